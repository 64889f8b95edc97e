//! One flow on a link without queueing that loses packets with a fixed probability (section 5.1 of
//! the SIMD paper).

use super::compare::{Allowed, Case, Measured, Row, cases, over_seeds, run};
use super::deterministic::{controller, conventions};

/// The number of seeds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seeds {
    /// For the test.
    Few,
    /// For the documentation.
    Many,
}

fn scenario(case: &Case) -> String {
    format!(
        r#"
        duration = "300s"
        sample = "1s"

        [[link]]
        from = "source"
        to = "sink"
        rate = "10gbit"
        queue = "infinite"
        delay = "50ms"
        loss = {}
        back = {{ loss = 0 }}

        [tcp]
        conventions = "{}"
        packet = {}
        window = {}
        limited_transmit = {}

        [[flow]]
        controller = "{}"
        from = "source"
        to = "sink"
        "#,
        case.number("p", 0.01),
        conventions(case),
        case.number("pkt", 1000.0),
        case.number("window", 128.0),
        case.number("limited", 0.0) == 1.0,
        controller(&case.text("cc").expect("a law")),
    )
}

/// Returns packets sent and delivered per second, timeouts and window reductions.
fn measure(case: &Case, seed: u64) -> [f64; 4] {
    let run = run(&scenario(case), seed);
    [
        run.sum(|flow| flow.packets_sent as f64) / run.seconds(),
        run.sum(|flow| flow.packets_delivered as f64) / run.seconds(),
        run.sum(|flow| flow.timeouts as f64),
        run.sum(|flow| flow.cuts.len() as f64),
    ]
}

/// Compares the throughput of each law at each loss rate, and its ratio to that of TCP.
pub(crate) fn rows(seeds: Seeds) -> Vec<Row> {
    let mut cases = cases(include_str!("simd_randloss.json"));
    if seeds == Seeds::Few {
        cases.retain(|case| conventions(case) == "ns2-2001");
    }
    let seeds_of = |_: &Case| if seeds == Seeds::Few { 50 } else { 200 };
    let measured = over_seeds(&cases, seeds_of, measure);
    let tcp = |case: &Case| {
        let same = |other: &Case| {
            other.text("cc").as_deref() == Some("tcp")
                && conventions(other) == conventions(case)
                && other.text("p") == case.text("p")
        };
        cases.iter().position(same).expect("TCP at every loss rate")
    };
    let mut rows = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        let allowed = Allowed::Share(if case.number("p", 0.0) <= 0.05 { 0.05 } else { 0.1 });
        let [sent, delivered, timeouts, cuts] = measured[at];
        rows.push(Row::new(case, "packets/s sent", "throughput", sent, allowed));
        rows.push(Row::new(case, "packets/s delivered", "goodput", delivered, allowed));
        rows.push(Row::new(case, "timeouts", "timeouts", timeouts, Allowed::Any));
        rows.push(Row::new(case, "cuts", "cuts", cuts, Allowed::Any));
        let reference = tcp(case);
        if case.has("recorded") && seeds == Seeds::Many {
            rows.push(Row::new(case, "ten runs of ns-2", "recorded", sent, Allowed::Any));
        }
        if reference != at {
            let ours = Measured { mean: sent.mean / measured[reference][0].mean, ..sent };
            let mut row = Row::new(case, "share of TCP's", "throughput", ours, allowed);
            row.ns2.mean /= cases[reference].result("throughput").0;
            rows.push(row);
        }
    }
    rows
}
