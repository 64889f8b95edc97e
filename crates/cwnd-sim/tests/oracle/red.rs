//! n TCP flows and n flows of another law over a bottleneck with RED, RED with ECN or DropTail, and
//! four TCP flows in the reverse direction (section 5.2 of the SIMD paper).

use super::compare::{Allowed, Case, Hosts, Row, Run, cases, draws, over_seeds, run, tcp_flow};
use super::deterministic::controller;

/// The cases to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cases {
    /// For the test: 15 Mb/s, each queue, few and many flows.
    Some,
    /// For the documentation.
    All,
}

fn scenario(case: &Case, seed: u64) -> String {
    let kind = case.text("queue").expect("a queue");
    let rate = case.number("bw", 15e6);
    // 2.5 bandwidth-delay products for RED or 1.5 for DropTail, which holds one packet less in
    // ns-2.
    let product = rate * 0.06 / 8000.0;
    let queue = if kind == "droptail" {
        format!("\"{}p\"", (1.5 * product).round() - 1.0)
    } else {
        format!("{{ kind = \"red\", limit = \"2.5bdp\", ecn = {} }}", kind == "red_ecn")
    };
    let mut text = format!(
        r#"
        duration = "90s"
        warmup = "30s"
        sample = "1s"

        [tcp]
        conventions = "ns2-2001"
        packet = 1000
        window = {}
        ecn = {}

        [[link]]
        from = "left"
        to = "right"
        rate = {rate}
        delay = "20ms"
        bdp_rtt = "60ms"
        queue = {queue}
        "#,
        case.number("window", 1000.0),
        kind == "red_ecn",
    );
    let n = case.number("n", 4.0) as usize;
    let other = controller(&case.text("other").expect("a law"));
    let mut hosts =
        Hosts { rate: 10.0 * rate, draw: draws(seed), least: 0.0, longest: 0.010, count: 0 };
    for flow in 0..2 * n {
        let law = if flow % 2 == 0 { "reno" } else { &other };
        let (from, to) = (hosts.add(&mut text, "left"), hosts.add(&mut text, "right"));
        let start = 5.0 * (hosts.draw)();
        text += &tcp_flow(&format!("flow-{flow}"), law, &from, &to, start);
    }
    for flow in 0..4 {
        let (from, to) = (hosts.add(&mut text, "right"), hosts.add(&mut text, "left"));
        let start = 5.0 * (hosts.draw)();
        text += &tcp_flow(&format!("back-{flow}"), "reno", &from, &to, start);
        text += "measured = false\n";
    }
    text
}

/// Returns drop rate and mark rate of data packets and of all packets, shares of both groups,
/// utilisation, mean queue, window reductions per packet, and timeouts.
fn measure(case: &Case, seed: u64) -> [f64; 9] {
    let run = run(&scenario(case, seed), seed);
    let link = run.link("left-right");
    let arrived = run.sum(|flow| flow.packets_sent as f64);
    let dropped = run.sum(|flow| flow.packets_lost as f64);
    let all = link.arrivals as f64;
    let n = case.number("n", 4.0) as usize;
    let fair = case.number("bw", 15e6) / 8000.0 / (2 * n) as f64;
    // TCP flows and flows of the other law alternate.
    let sent = |first: usize| {
        let flows = run.flows().skip(first).step_by(2);
        flows.map(|flow| flow.packets_sent).sum::<u64>() as f64
    };
    let share = |first| sent(first) / run.seconds() / n as f64 / fair;
    [
        dropped / arrived,
        link.marks as f64 / arrived,
        link.drops as f64 / all,
        share(0),
        share(1),
        link.utilization,
        link.mean_queue,
        cuts(&run) / sent(0),
        run.sum(|flow| flow.timeouts as f64),
    ]
}

/// Returns the window reductions of the TCP flows after the warm-up.
fn cuts(run: &Run) -> f64 {
    let warmup = run.network.warmup.as_secs();
    let cuts = run.flows().step_by(2).flat_map(|flow| &flow.cuts);
    cuts.filter(|cut| cut.at.as_secs() >= warmup).count() as f64
}

fn is_droptail(case: &Case) -> bool {
    case.text("queue").as_deref() == Some("droptail")
}

/// Compares loss rates and mark rates, and the shares that depend on them.
pub(crate) fn rows(which: Cases) -> Vec<Row> {
    let mut cases = cases(include_str!("simd_compat.json"));
    if which == Cases::Some {
        cases.retain(|case| {
            case.number("bw", 0.0) < 20e6 && [2.0, 8.0, 32.0].contains(&case.number("n", 0.0))
        });
    }
    // The results of few flows with DropTail vary most between the random placements.
    let seeds = |case: &Case| match case.number("n", 4.0) as u64 {
        2 if which == Cases::All || is_droptail(case) => case.seeds(),
        2 | 8 => case.seeds().min(10),
        _ => case.seeds().min(6),
    };
    let measured = over_seeds(&cases, seeds, measure);
    let quantities = |droptail| {
        // A rate below 1e-4 is that of few packets. Results with few flows and DropTail are
        // chaotic: the standard error of ns-2's mean is up to 10 %.
        let close =
            if droptail { Allowed::ShareOrErrors(0.1) } else { Allowed::ShareOr(0.1, 1e-4) };
        [
            ("data dropped", "data_drop_rate", close),
            ("data marked", "data_mark_rate", close),
            ("all packets dropped", "drop_rate", close),
            ("share of TCP", "sack_share", Allowed::Any),
            ("share of the other", "other_share", Allowed::Any),
            ("utilisation", "utilization", Allowed::Share(0.02)),
            ("mean queue", "mean_queue", Allowed::Any),
            ("TCP's cuts per packet", "sack_loss_event_rate", Allowed::Any),
            ("timeouts", "timeouts", Allowed::Any),
        ]
    };
    let rows = |(case, values): (&Case, _)| Row::all(case, quantities(is_droptail(case)), values);
    cases.iter().zip(measured).flat_map(rows).collect()
}
