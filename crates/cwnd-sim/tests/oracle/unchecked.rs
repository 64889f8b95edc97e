//! Experiments for the documentation only, because they are noisy or slow.

use super::compare::{Allowed, Case, Hosts, Row, Run, cases, draws, over_seeds, run, tcp_flow};
use super::deterministic::{controller, conventions};
use cwnd_sim::metrics::formula::{jain, mean, stability_index};

fn rows<const N: usize>(
    cases: &[Case],
    seeds: u64,
    quantities: [(&'static str, &str); N],
    measure: impl Fn(&Case, u64) -> [f64; N] + Sync,
) -> Vec<Row> {
    let measured = over_seeds(cases, |case| case.seeds().min(seeds), measure);
    let mut rows = Vec::new();
    for (case, values) in cases.iter().zip(measured) {
        for ((what, key), value) in quantities.into_iter().zip(values) {
            if case.has(key) && !value.mean.is_nan() {
                rows.push(Row::new(case, what, key, value, Allowed::Any));
            }
        }
    }
    rows
}

/// 16 GAIMD and 16 Reno flows with UDP sources that have Pareto-distributed on times and off times
/// (section 2.4 of the GAIMD paper).
pub(crate) fn gaimd() -> Vec<Row> {
    let quantities = [
        ("GAIMD: cuts per packet", "gaimd_p_events"),
        ("packets/s", "gaimd_rate_pps"),
        ("Reno: cuts per packet", "reno_p_events"),
        ("Reno: packets/s", "reno_rate_pps"),
        ("GAIMD over Reno", "gaimd_over_reno_rate"),
        ("drop rate", "fwd_drop_rate"),
    ];
    rows(&cases(include_str!("gaimd_formula.json")), 6, quantities, gaimd_run)
}

fn gaimd_run(case: &Case, seed: u64) -> [f64; 6] {
    let limit = case.number("limit", 100.0);
    let queue = match case.text("queue").as_deref() {
        Some("red") => format!("{{ kind = \"red\", limit = \"{limit}p\", mean_packet = 1000 }}"),
        _ => format!("\"{}p\"", limit - 1.0),
    };
    let mut text = format!(
        r#"
        duration = "120s"
        sample = "1s"

        [tcp]
        conventions = "{}"
        recovery = "reno"
        granularity = {}
        window = 10000

        [[link]]
        from = "left"
        to = "right"
        rate = "15mbit"
        delay = "50ms"
        queue = {queue}
        back = {{ queue = "{}p" }}
        "#,
        conventions(case),
        case.number("tick", 0.01),
        limit - 1.0,
    );
    let law = format!("gaimd({}, {})", case.number("alpha", 1.0), case.number("beta", 0.5));
    let mut hosts = Hosts { rate: 1e8, draw: draws(seed), least: 0.0, longest: 0.010, count: 0 };
    for flow in 0..32 {
        let (from, to) = (hosts.add(&mut text, "left"), hosts.add(&mut text, "right"));
        let start = 10.0 * (hosts.draw)();
        let law = if flow < 16 { &law } else { "reno" };
        text += &tcp_flow(&format!("flow-{flow}"), law, &from, &to, start);
    }
    for source in 0..case.number("m", 10.0) as usize {
        let (from, to) = (hosts.add(&mut text, "left"), hosts.add(&mut text, "right"));
        let start = 3.0 * (hosts.draw)();
        text += &format!(
            r#"
            [[pareto]]
            name = "udp-{source}"
            rate = "500kbit"
            packet = 1000
            on = "1s"
            off = "2s"
            shape = 1.5
            from = "{from}"
            to = "{to}"
            start = {start:.9}
            "#
        );
    }
    let run = run(&text, seed);
    let link = run.link("left-right");
    // As in ns-2's results, flows that did not get beyond their first timeouts are excluded.
    let of = |flows: std::ops::Range<usize>| {
        let alive: Vec<_> = flows
            .filter(|&flow| run.records.flows[flow].packets_delivered > 0)
            .map(|flow| {
                let (record, start) = (&run.records.flows[flow], run.network.flows[flow].start);
                let sent = record.packets_sent as f64;
                (record.cuts.len() as f64 / sent, sent / (120.0 - start.as_secs()))
            })
            .collect();
        let n = alive.len() as f64;
        (alive.iter().map(|a| a.0).sum::<f64>() / n, alive.iter().map(|a| a.1).sum::<f64>() / n)
    };
    let (gaimd, reno) = (of(0..16), of(16..32));
    let dropped = link.drops as f64 / link.arrivals as f64;
    [gaimd.0, gaimd.1, reno.0, reno.1, gaimd.1 / reno.1, dropped]
}

/// Two flows that share a link from 400 s on (section 5.3 of the SIMD paper).
pub(crate) fn converge() -> Vec<Row> {
    let quantities = [
        ("W1", "W1"),
        ("W2", "W2"),
        ("W at the first cut", "W_at_first_loss"),
        ("T1, RTTs", "T1_rtt"),
        ("δ, packets", "delta_pkts"),
        ("T2, RTTs", "T2_rtt_first_below_eps"),
    ];
    rows(&cases(include_str!("simd_converge.json")), 8, quantities, converge_run)
}

fn converge_run(case: &Case, seed: u64) -> [f64; 6] {
    let law = controller(&case.text("cc").expect("a law"));
    let delay = case.number("delay", 0.012);
    let rates = [6e6, 6e6, case.number("y", 6e6)];
    let mut text = format!(
        r#"
        duration = "{}s"
        sample = "50ms"

        [tcp]
        conventions = "ns2-2001"
        packet = 500
        window = 128
        "#,
        400.0 + case.number("after", 60.0)
    );
    for (link, rate) in rates.iter().enumerate() {
        let limit = (2.5 * rate * 0.05 / 4000.0).round();
        text += &format!(
            r#"
            [[link]]
            from = "b{}"
            to = "b{}"
            rate = {rate}
            delay = {delay}
            queue = {{ kind = "red", limit = "{limit}p" }}
            back = {{ queue = "{}p" }}
            "#,
            link + 1,
            link + 2,
            limit - 1.0
        );
    }
    let draw = draws(seed);
    let mut hosts = Hosts { rate: 1e8, draw, least: 0.00025, longest: 0.00075, count: 0 };
    let background = |count: f64, from, to| (0..count as usize).map(move |_| (from, to));
    let pairs = [("b1", "b3"), ("b2", "b4")].into_iter();
    let pairs = pairs.chain(background(case.number("c1", 0.0), "b1", "b2"));
    let pairs = pairs.chain(background(case.number("c2", 0.0), "b3", "b4"));
    for (flow, (from, to)) in pairs.enumerate() {
        let (from, to) = (hosts.add(&mut text, from), hosts.add(&mut text, to));
        let start = 2.0 * (hosts.draw)();
        text += &tcp_flow(&format!("flow-{flow}"), &law, &from, &to, start);
        text += if flow < 2 { "" } else { "stop = \"400s\"\n" };
    }
    let run = run(&text, seed);
    convergence(&run, 4.0 * delay + 4.0 * 0.0005)
}

/// Returns the same statistics as ns-2's results, of samples every 50 ms from 400 s on.
fn convergence(run: &Run, propagation: f64) -> [f64; 6] {
    let records = &run.records;
    let link = run.link("b2-b3");
    let window = |flow: usize, at: usize| records.flows[flow].series.window[at];
    let cuts_by = |at: usize| {
        let cut = |flow: usize| {
            let cuts = records.flows[flow].cuts.iter();
            cuts.filter(|cut| cut.at.as_secs() <= records.time[at]).count()
        };
        (cut(0), cut(1))
    };
    let first = records.time.iter().position(|time| *time >= 400.0).expect("a sample at 400 s");
    let (mut round_trips, mut efficient, mut fair) = (0.0, [f64::NAN; 3], f64::NAN);
    let mut cuts_at_drop = None;
    for at in first + 1..records.time.len() {
        let rtt = propagation + (link.queue[at] + 1.0) * 500.0 * 8.0 / 6e6;
        round_trips += (records.time[at] - records.time[at - 1]) / rtt;
        if cuts_at_drop.is_none() && link.drops_series[at] > link.drops_series[first] {
            cuts_at_drop = Some(cuts_by(at - 1));
        }
        let (w1, w2) = (window(0, at - 1), window(1, at - 1));
        if efficient[0].is_nan() && cuts_at_drop.is_some_and(|cuts| cuts != cuts_by(at)) {
            efficient = [round_trips, (w1 - w2).abs(), w1 + w2];
        }
        if fair.is_nan() && (window(0, at) - window(1, at)).abs() < 10.0 {
            fair = round_trips;
        }
    }
    let [t1, delta, sum] = efficient;
    [window(0, first), window(1, first), sum, t1, delta, fair]
}

/// Ten flows on 1 Gb/s with round-trip times from 10 us to 1 s (Table 5 of the DAIMD paper).
pub(crate) fn daimd() -> Vec<Row> {
    let mut cases = cases(include_str!("daimd_table5.json"));
    cases.retain(|case| case.name.starts_with("10flows:"));
    let quantities =
        [("Mb/s", "rate"), ("Jain's index", "fairness"), ("stability index", "stability")];
    rows(&cases, 3, quantities, daimd_run)
}

fn daimd_run(case: &Case, seed: u64) -> [f64; 3] {
    let recovery = case.text("type").unwrap_or("sack".into());
    let mut draw = draws(seed);
    let duration = case.number("T", 20.0);
    let mut text = format!(
        r#"
        duration = "{duration}s"
        sample = "1s"

        [dumbbell]
        rate = "1gbit"
        delay = {:.9}
        queue = "1999p"

        [access]
        rate = "10gbit"

        [tcp]
        conventions = "ns2"
        recovery = "{recovery}"
        packet = 1460
        window = 200000
        "#,
        case.number("rtt", 0.01) / 2.0
    );
    for flow in 0..10 {
        text += &tcp_flow(&format!("flow-{flow}"), "reno", "left", "right", 0.1 * draw());
    }
    let run = run(&text, seed);
    // Packets delivered in each second of the second half of the run.
    let rates: Vec<Vec<f64>> = run
        .flows()
        .map(|flow| {
            let delivered = &flow.series.delivered;
            delivered.windows(2).skip(delivered.len() / 2).map(|pair| pair[1] - pair[0]).collect()
        })
        .collect();
    let means: Vec<f64> = rates.iter().map(|rates| mean(rates)).collect();
    [means.iter().sum::<f64>() * 1500.0 * 8.0 / 1e6, jain(&means), stability_index(&rates)]
}
