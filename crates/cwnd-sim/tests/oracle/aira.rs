//! The dumbbells of the AIRA paper, with the AIMD of ns-2.

use cwnd_sim::metrics::formula::jain;

use super::compare::{Allowed, Case, Row, cases, draws, over_seeds, run};

/// Returns the scenario of `exp_aira`: `n` flows over a DropTail bottleneck.
pub(crate) fn scenario(case: &Case, seed: u64) -> String {
    let mut draw = draws(seed);
    let number = |key, default| case.number(key, default);
    let delay = number("delay", 0.020);
    let access = number("access", 0.001);
    let (a, b) = (number("a", 1.0), number("b", 0.5));
    let flows = number("n", 2.0) as usize;
    let rtts = case.text("rtts").unwrap_or_default();
    let rtts: Vec<&str> = rtts.split_whitespace().collect();
    let jitter = number("jitter", 1.0);
    let mut text = format!(
        r#"
        duration = "{}s"

        [dumbbell]
        rate = {}
        delay = {delay}
        queue = "{}p"

        [access]
        rate = {}
        delay = {access}

        [tcp]
        conventions = "ns2"
        packet = {}
        window = 10000
        delayed_acks = {}
        "#,
        number("T", 200.0),
        number("bw", 1e6),
        number("buf", 15.0) - 1.0,
        number("access_bw", 1e7),
        number("pkt", 1000.0),
        number("delack", 0.0) == 1.0,
    );
    for flow in 0..flows {
        let start = flow as f64 * number("stagger", 0.0) + jitter * draw();
        let rtt = match rtts.get(flow % rtts.len().max(1)) {
            Some(rtt) => format!("rtt = {rtt}"),
            None => String::new(),
        };
        text += &format!(
            r#"
            [[flow]]
            name = "flow-{flow}"
            controller = "gaimd({a}, {b})"
            start = {start:.9}
            {rtt}
            "#
        );
    }
    text
}

/// Returns goodput in bytes per second, retransmissions, timeouts, window reductions, drop rate and
/// Jain's index.
fn measure(case: &Case, seed: u64) -> [f64; 6] {
    let run = run(&scenario(case, seed), seed);
    let link = run.link("left-right");
    let delivered: Vec<f64> = run.flows().map(|flow| flow.packets_delivered as f64).collect();
    [
        delivered.iter().sum::<f64>() * case.number("pkt", 1000.0) / run.seconds(),
        run.sum(|flow| flow.retransmissions as f64),
        run.sum(|flow| flow.timeouts as f64),
        run.sum(|flow| flow.cuts.len() as f64),
        link.drops as f64 / link.arrivals as f64,
        jain(&delivered),
    ]
}

fn rows(cases: &[Case], seeds: u64, checked: bool) -> Vec<Row> {
    let measured = over_seeds(cases, |_| seeds, measure);
    let allow = |allowed| if checked { allowed } else { Allowed::Any };
    let quantities = [
        ("goodput", "goodput", allow(Allowed::Share(0.01))),
        ("retransmissions", "retransmissions", allow(Allowed::ShareOrSpread(0.1))),
        ("timeouts", "timeouts", Allowed::Any),
        ("cuts", "cuts", Allowed::Any),
        ("drop rate", "drop_rate", Allowed::Any),
        ("Jain's index", "jain", Allowed::Any),
    ];
    let each = cases.iter().zip(measured);
    each.flat_map(|(case, values)| Row::all(case, quantities, values)).collect()
}

/// Table 1: two and four flows on 1 Mb/s with additive increases from 1/5 to 2, and with delayed
/// acknowledgements.
pub(crate) fn table_1(seeds: u64) -> Vec<Row> {
    rows(&cases(include_str!("aira_table1.json")), seeds, true)
}

/// Table 3 (flows that start one after the other), Table 4 (four round-trip times) and section 7
/// (ten flows).
pub(crate) fn tables_3_and_4(seeds: u64) -> Vec<Row> {
    rows(&cases(include_str!("aira_tables34.json")), seeds, false)
}
