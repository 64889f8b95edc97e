//! Copies of a run in progress: a run and its copies have the results of a run that was not copied.

use crate::common::random::{Case, FAST, SLOW, case, config, is_bounded};
use crate::common::results::difference;
use crate::common::{ms, packets, pair, scenario, tcp, with_custom};
use cwnd::laws::Reno;
use cwnd::{AnyController, Dur, Settings, Time};
use cwnd_sim::network::{Network, Traffic};
use cwnd_sim::record::Records;
use cwnd_sim::{ForkError, Options, Simulation};
use proptest::prelude::*;

/// A time of a run.
fn at(network: &Network, fraction: f64) -> Time {
    Time::ZERO + Dur::from_secs(fraction * network.duration.as_secs())
}

fn begin(network: &Network, seed: u64, lookahead: bool) -> Simulation {
    let options = Options { lookahead, record_events: true, ..Options::default() };
    Simulation::new(network, seed, &options).unwrap()
}

fn ended(mut simulation: Simulation) -> Records {
    simulation.run();
    simulation.finish()
}

/// Forks a run at two times. Returns the first difference between the results of the run, its
/// copies and a run that is not copied.
fn check_forks(case: &Case, network: &Network, times: [f64; 2]) -> Result<(), String> {
    for lookahead in [true, false] {
        let expected = ended(begin(network, case.seed, lookahead));
        let mut run = begin(network, case.seed, lookahead);
        let at_begin = run.fork().unwrap();
        run.run_until(at(network, times[0])).unwrap();
        let mut copy = run.fork().unwrap();
        run.run_for(case.slice);
        copy.run_until(at(network, times[1])).unwrap();
        let copy_of_copy = copy.fork().unwrap();
        run.run();
        let at_end = run.fork().unwrap();
        for (name, run) in [
            ("the run", run),
            ("its copy", copy),
            ("the copy of its copy", copy_of_copy),
            ("its copy at the beginning", at_begin),
            ("its copy at the end", at_end),
        ] {
            let records = ended(run);
            if let Some(difference) = difference(&expected, &records) {
                return Err(format!("lookahead {lookahead}, {name}: {difference}"));
            }
            let flows = || expected.flows.iter().zip(&records.flows);
            let differs = flows().position(|(one, other)| one.events != other.events);
            if differs.is_some() || expected.events != records.events {
                return Err(format!("lookahead {lookahead}, {name}: events, of flow {differs:?}"));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: config().cases / 4, ..config() })]

    #[test]
    fn copies_have_the_results_of_the_run(
        case in prop_oneof![case(&SLOW), case(&FAST)],
        times in [0.0..1.2, 0.0..1.2f64],
    ) {
        let network = case.network();
        prop_assume!(is_bounded(&network));
        check_forks(&case, &network, times).map_err(TestCaseError::fail)?;
    }
}

/// A run stops less than a round-trip time and a full queue before the time: the number of events
/// is in proportion to the time.
#[test]
fn a_run_stops_shortly_before_the_time() {
    let traffic = vec![Traffic::Cbr { rate: 9e6, packet: 1000, schedule: None, jitter: 0.1 }];
    let network = pair(10e6, ms(20), packets(50), traffic, Dur::from_secs(10.0));
    let total = ended(begin(&network, 1, true)).events as f64;
    for seconds in [0.0, 1.0, 5.0, 20.0f64] {
        let mut run = begin(&network, 1, true);
        run.run_until(Time::ZERO + Dur::from_secs(seconds)).unwrap();
        let mut left = 0;
        while !run.run_for(1) {
            left += 1;
        }
        let reached = 10.0 * (1.0 - f64::from(left) / total);
        // 20 ms, a short queue, and 256 of 1125 events a second.
        let least = seconds.min(10.0) - 0.3;
        assert!((least..=seconds + 0.01).contains(&reached), "{reached} s of {seconds} s");
    }
}

#[test]
fn runs_that_cannot_be_copied_say_why() {
    let text = r#"
        duration = "1s"
        dumbbell = { rate = "10mbit", delay = "10ms", queue = "20p" }
        flow = [{ controller = "python:Mine" }]
    "#;
    let network = scenario(text, 1);
    let make = |settings: &Settings| AnyController::window(Reno::new(), settings);
    let forked = with_custom(make, |options| {
        let mut run = Simulation::new(&network, 1, options).unwrap();
        assert!(run.run_until(at(&network, 0.5)).is_err());
        run.fork().map(drop)
    });
    let error = forked.unwrap_err().to_string();
    assert!(error.ends_with("the state of python:Mine cannot be copied"), "{error}");
    let network = pair(1e6, ms(1), packets(9), vec![Traffic::Tcp(tcp("reno"))], ms(1000));
    let mut run = begin(&network, 1, true);
    run.tap(0, |_| ());
    assert_eq!(run.fork().map(drop), Err(ForkError::Tapped));
}
