//! The test cases of appendix A of draft-ietf-ccwg-bbr-06 with `bbr3` over simulated TCP. Each check
//! holds, and fails for a test double with a fault. Its result is a row of `docs/bbr.md`, which
//! `cargo test -p cwnd-sim --test all bbr_draft::report -- --ignored` writes.

mod cases;
mod double;

use crate::common::{gauge, run_with, scenario, simulate, with_custom};
use cases::{CASES, Case, Run, Wrong, ended};
use cwnd::controllers::bbr3::State;
use cwnd::{AnyController, Settings};
use double::{Double, FAULTS, Fault};
use std::sync::{Arc, Mutex};

/// Bytes of a packet on the wire.
const PACKET: f64 = 1500.0;

fn run(text: &str, fault: Fault) -> Run {
    let seen: Arc<Mutex<Vec<_>>> = Arc::default();
    let steps = seen.clone();
    let make = move |settings: &Settings| {
        AnyController::whole(Double::new(settings, fault, steps.clone()))
    };
    // A controller of this name is not in the registry.
    let network = scenario(&text.replace("\"bbr3\"", "\"test:bbr3\""), 1);
    let records = with_custom(make, |options| run_with(&network, 1, options));
    let steps = std::mem::take(&mut *seen.lock().unwrap());
    Run::new(&network, PACKET, records, steps)
}

/// Returns the lines of a table of the file.
fn table(case: &Case, name: &str) -> String {
    let lines = case.text.lines().skip_while(|line| *line != name).skip(1);
    let lines = lines.take_while(|line| !line.is_empty() && !line.starts_with('['));
    lines.filter(|line| !line.starts_with("controller")).collect::<Vec<_>>().join(", ")
}

/// Returns the row of a case in the document.
fn row(case: &Case, fault: Fault, measured: &str) -> String {
    let (number, title) = case.title();
    let (link, flow) = (table(case, "[dumbbell]"), table(case, "[[flow]]"));
    let flow = if flow.is_empty() { flow } else { format!(", `{flow}`") };
    format!(
        "| [{number}](../validation/bbr/{}.toml) | {title} | `{link}`{flow} | {measured} | {fault} |\n",
        case.name
    )
}

fn verify(case: &Case, fault: Fault) {
    let measured = (case.check)(&run(case.text, Fault::None));
    let measured = measured.unwrap_or_else(|wrong| panic!("{}: {wrong}", case.name));
    match (case.check)(&run(case.text, fault)) {
        Err(Wrong::Violated(_)) => {}
        other => panic!("{}: a controller that {fault} passes: {other:?}", case.name),
    }
    let row = row(case, fault, &measured);
    let document = include_str!("../../../docs/bbr.md");
    assert!(document.contains(&row), "{}: docs/bbr.md lacks\n{row}", case.name);
}

/// Declares a test for each case.
macro_rules! tests {
    ($($test:ident)*) => {$(
        #[test]
        fn $test() {
            let number = stringify!($test)[1..].parse::<usize>().unwrap();
            verify(&CASES[number - 1], FAULTS[number - 1]);
        }
    )*};
}

tests! { a01 a02 a03 a04 a05 a06 a07 a08 a09 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 }

/// Startup finds the bandwidth of other networks, and Drain the product.
#[test]
fn startup_and_drain_on_other_networks() {
    let text = include_str!("../../../validation/bbr/A01-startup-plateau.toml");
    // On the shortest path BBRInflight(1.0) is 25 packets, three times the product: after losses no
    // more are in flight, and Drain may end with the acknowledgement that begins it.
    for (rate, delay, queue) in [
        ("500kbit", "100ms", 4),
        ("20mbit", "20ms", 4),
        ("100mbit", "500us", 12),
        ("1gbit", "5ms", 4),
    ] {
        let text = text.replace("20mbit", rate).replace("20ms", delay);
        let run = run(&text.replace("2bdp", &format!("{queue}bdp")), Fault::None);
        let startup = ended(&run.steps, State::Startup)[0];
        let found = startup.next.max_bw / run.rate;
        assert!((0.98..1.02).contains(&found), "{rate}: {found}");
        assert!(startup.rounds() < 20, "{rate}: {} rounds", startup.rounds());
        if delay != "500us" {
            (CASES[2].check)(&run).unwrap();
        }
    }
}

/// The notes of the document: which decrease of the rate Drain outlasts (A.4), when max_bw falls by
/// the draft's rule alone, and how long min_rtt is too large (A.16).
#[test]
fn notes() {
    let text = include_str!("../../../validation/bbr/A04-drain-time.toml");
    let drains = ["18mbit", "11mbit", "10mbit"].map(|rate| {
        let run = run(&text.replace("9mbit", rate), Fault::None);
        let drain = ended(&run.steps, State::Drain)[0];
        format!("{:.2} s, {:?}", drain.seconds(), drain.next.state)
    });
    assert_eq!(drains, ["0.10 s, Cruise", "0.38 s, Cruise", "0.47 s, Down"]);

    let text = include_str!("../../../validation/bbr/A16-slower.toml");
    let records = simulate(&text.replace("\"bbr3\"", "\"bbr3(aging=draft)\""), 1);
    let max_bw = gauge(&records.flows[0], "max_bw");
    let found = max_bw.iter().rposition(|rate| *rate > 10.5 * 1e6 / (8.0 * PACKET)).unwrap();
    assert!((29.65..29.75).contains(&records.time[found]), "{}", records.time[found]);

    let records = simulate(&text.replace("40s", "45s"), 1);
    let at = |seconds: f64| records.time.partition_point(|time| *time < seconds);
    let [state, min_rtt] = ["state", "min_rtt"].map(|name| gauge(&records.flows[0], name));
    let probe_rtt = f64::from(State::ProbeRtt as u8);
    assert!(!state[at(27.0)..at(43.0)].contains(&probe_rtt));
    assert!(min_rtt[at(30.0)] > 0.09 && min_rtt[at(35.3)] > 0.06 && min_rtt[at(39.0)] < 0.043);
}

/// Writes the table of the document.
#[test]
#[ignore = "writes docs/bbr.md"]
fn report() {
    let rows = CASES.iter().zip(FAULTS).map(|(case, fault)| {
        let measured = (case.check)(&run(case.text, Fault::None));
        row(case, fault, &measured.unwrap_or_else(|wrong| wrong.to_string()))
    });
    let head = "| case | | network and application | measured | fails for a controller that |\n\
                |---|---|---|---|---|\n";
    cases::write_table("cases", &(head.to_owned() + &rows.collect::<String>()));
}
