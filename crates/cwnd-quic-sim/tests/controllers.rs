//! cwnd's controllers in the stacks beside the stacks' own.

use crate::common::{STACKS, run};
use cwnd_sim::record::FlowRecord;

fn long(stack: &str, controller: &str) -> FlowRecord {
    let text = format!(
        r#"
        duration = "30s"
        warmup = "5s"
        dumbbell = {{ rate = "20mbit", delay = "20ms", queue = "15p" }}
        flow = [{{ protocol = "quic", stack = "{stack}", controller = "{controller}" }}]
        "#
    );
    run(&text, 1).flows.swap_remove(0)
}

/// The window before each reduction after slow start, and the time to the next one in seconds.
fn periods(flow: &FlowRecord) -> Vec<(f64, f64)> {
    let cuts: Vec<_> = flow.cuts.iter().map(|cut| (cut.at.as_secs(), cut.cut.before())).collect();
    let steady = cuts.windows(2).filter(|pair| pair[0].0 > 2.5);
    steady.map(|pair| (pair[0].1, pair[1].0 - pair[0].0)).collect()
}

/// Checks why the numbers of reductions differ (docs/quic.md).
fn explain(law: &str, own: &FlowRecord, ours: &FlowRecord) {
    let [own, ours] = [own, ours].map(periods);
    let mean = ours.iter().map(|period| period.1).sum::<f64>() / ours.len() as f64;
    assert!(ours.iter().all(|period| (period.1 / mean - 1.0).abs() < 0.02), "{law}: {ours:?}");
    if law == "reno" {
        // Windows of whole packets exceed the path by up to one packet more: a round trip later.
        let above = own.iter().map(|period| period.0 - ours[0].0);
        assert!(above.into_iter().all(|above| above > 0.6 && above < 1.0), "{own:?}");
        assert!(own.iter().all(|period| period.1 > mean && period.1 < mean + 0.05), "{own:?}");
        return;
    }
    // Fast convergence reduces the maximum, from which the stack's Reno-friendly window begins.
    let (mut maximum, mut longer) = (0.0, 0);
    for &(before, period) in &own {
        let converges = before < maximum;
        maximum = if converges { before * 0.85 } else { before };
        longer += usize::from(converges);
        assert_eq!(period > 1.3 * mean, converges, "{own:?}");
    }
    assert!(longer > own.len() / 4, "{own:?}");
}

/// The two implementations of a law have the same goodput and the same reductions in size, with a
/// queue that is too short for full use of the link.
#[test]
fn reno_and_cubic_are_those_of_noq() {
    for (law, kept) in [("reno", 0.5), ("cubic", 0.7)] {
        let [own, ours] = [format!("own:{law}"), law.to_owned()].map(|name| long("noq", &name));
        let ratio = ours.bytes_delivered as f64 / own.bytes_delivered as f64;
        assert!((ratio - 1.0).abs() < 0.01, "{law}: {ratio}");
        for flow in [&own, &ours] {
            assert!(flow.cuts.len() > 4, "{law}: {:?}", flow.cuts);
            for cut in &flow.cuts {
                let part = cut.cut.after() / cut.cut.before();
                assert!((part - kept).abs() < 0.01, "{law}: {cut:?}");
            }
        }
        explain(law, &own, &ours);
    }
}

/// Every controller of the registry fills a link in both stacks. quinn ignores pacing rates.
#[test]
fn every_controller_runs_in_both_stacks() {
    for algorithm in cwnd::registry::algorithms() {
        for stack in STACKS {
            let text = format!(
                r#"
                duration = "6s"
                warmup = "2s"
                dumbbell = {{ rate = "5mbit", delay = "10ms", queue = "40p" }}
                flow = [{{ protocol = "quic", stack = "{stack}", controller = "{}" }}]
                "#,
                algorithm.name
            );
            let flow = run(&text, 1).flows.swap_remove(0);
            let rate = flow.bytes_delivered as f64 * 8.0 / 4.0;
            assert!(rate > 1e6, "{} in {stack}: {rate}, {:?}", algorithm.name, flow.closed);
            assert_eq!(flow.closed, None, "{} in {stack}", algorithm.name);
        }
    }
}
