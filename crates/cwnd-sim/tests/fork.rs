//! Copies of a run in progress: a run and its copies have the results of a run that was not copied.

use crate::common::random::{Case, FAST, SLOW, case, config, is_bounded};
use crate::common::results::difference;
use crate::common::{at_ms, ms, packets, pair, scenario, tcp, udt, with_custom};
use cwnd::laws::Reno;
use cwnd::registry::declare;
use cwnd::{AnyController, Dur, Settings, Time};
use cwnd_sim::network::{Network, Traffic};
use cwnd_sim::record::Records;
use cwnd_sim::{ChangeError, ForkError, Options, Simulation};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::sync::Arc;

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
fn check_forks(
    network: &Network,
    times: [f64; 2],
    (seed, slice): (u64, u64),
) -> Result<(), String> {
    for lookahead in [true, false] {
        let expected = ended(begin(network, seed, lookahead));
        let mut run = begin(network, seed, lookahead);
        let at_begin = run.fork().unwrap();
        run.run_until(at(network, times[0])).unwrap();
        let mut copy = run.fork().unwrap();
        run.run_for(slice);
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
        check_forks(&network, times, (case.seed, case.slice)).map_err(TestCaseError::fail)?;
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

/// Laws in files, with histories, random numbers and `repeat`.
const TEXTS: [(&str, &str); 4] = [
    ("aiad.law", include_str!("../../cwnd/src/laws/aiad.law")),
    ("simd.law", include_str!("../../cwnd/src/laws/simd.law")),
    ("daimd.law", include_str!("../../cwnd/src/laws/daimd.law")),
    ("udt.law", include_str!("../../cwnd/src/laws/udt.law")),
];

#[test]
fn laws_in_files_are_copied_with_their_states_and_replaced() {
    for (name, text) in TEXTS {
        declare(name, text).unwrap();
    }
    let mut traffic = TEXTS.map(|(name, _)| Traffic::Tcp(tcp(name))).to_vec();
    traffic.push(Traffic::Udt(udt("simd.law")));
    let network = pair(10e6, ms(10), packets(20), traffic, ms(3000));
    check_forks(&network, [0.3, 0.6], (1, 500)).unwrap();
    let mut changed = network.clone();
    for (flow, law) in [(0, "simd.law"), (1, "aiad.law"), (2, "udt.law"), (3, "daimd.law")] {
        changed.flows[flow].traffic = Traffic::Tcp(tcp(law)).into();
    }
    let [from_begin, from_copy] = [0.0, 0.5].map(|fraction| {
        let mut run = begin(&network, 1, true);
        run.run_until(at(&network, fraction)).unwrap();
        let mut run = run.fork().unwrap();
        run.change(at(&network, 0.5), &changed).unwrap();
        ended(run)
    });
    assert_eq!(difference(&from_begin, &from_copy), None);
    assert!(difference(&ended(begin(&network, 1, true)), &from_copy).is_some());
}

/// A change of a random network: of its links, flows or both.
#[derive(Clone, Debug)]
struct Change {
    link: Option<Index>,
    rate: f64,
    delay: Dur,
    loss: f64,
    flow: Option<Index>,
    controller: &'static str,
    /// Start and stop, from the time of the change to the end of the run and later.
    times: Option<[f64; 2]>,
}

fn change() -> impl Strategy<Value = Change> {
    let link = (option::of(any::<Index>()), select(&[0.3, 1.0, 2.0, 7.0]), 0u64..30_000);
    let flow = (
        option::of(any::<Index>()),
        select(&["reno", "cubic", "aimd", "daimd", "udt", "bbr", "vegas"]),
        option::of([0.0..1.5, 0.0..1.5f64]),
    );
    (link, select(&[0.0, 0.01, 0.2]), flow).prop_map(|((link, rate, micros), loss, flow)| Change {
        link,
        rate,
        delay: Dur::from_micros(micros),
        loss,
        flow: flow.0,
        controller: flow.1,
        times: flow.2,
    })
}

impl Change {
    /// The network with the change.
    fn of(&self, network: &Network, at: Time) -> Network {
        let mut network = network.clone();
        if let Some(link) = self.link.map(|link| link.index(network.links.len())) {
            let link = &mut network.links[link];
            link.rate = link.rate.map(|rate| rate * self.rate);
            if !link.delay.is_zero() {
                link.delay = self.delay + Dur::from_nanos(1);
            }
            link.loss = self.loss;
        }
        let (count, left) = (network.flows.len(), network.duration.as_secs() - at.as_secs());
        if let Some(flow) = self.flow {
            let flow = &mut network.flows[flow.index(count)];
            if let Traffic::Tcp(tcp) = Arc::make_mut(&mut flow.traffic) {
                tcp.controller = self.controller.into();
            }
            if let Some([start, stop]) = self.times {
                let later = |part: f64| at + Dur::from_secs(part * left);
                flow.start = if flow.start > at { later(start) } else { flow.start };
                flow.stop = if flow.stop > at { later(stop).max(flow.start) } else { flow.stop };
            }
        }
        network
    }
}

/// Changes a run that has just begun and copies of a run, twice. Returns the first difference.
fn check_changes(
    case: &Case,
    network: &Network,
    changes: &[(f64, Change); 2],
) -> Result<usize, String> {
    let mut accepted = 0;
    for lookahead in [true, false] {
        let mut expected = begin(network, case.seed, lookahead);
        let mut run = begin(network, case.seed, lookahead);
        let mut current = network.clone();
        for (fraction, change) in changes {
            let time = at(network, *fraction);
            let changed = change.of(&current, time);
            run.run_until(time).unwrap();
            let mut copy = run.fork().unwrap();
            let refused = expected.change(time, &changed);
            let also = copy.change(time, &changed);
            if refused != also {
                return Err(format!("{refused:?} and {also:?}"));
            }
            if also.is_ok() && current != changed {
                (run, current) = (copy, changed);
                accepted += 1;
            }
        }
        let (expected, records) = (ended(expected), ended(run));
        if let Some(difference) = difference(&expected, &records) {
            return Err(format!("lookahead {lookahead}: {difference}"));
        }
    }
    Ok(accepted)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: config().cases / 4, ..config() })]

    #[test]
    fn changed_copies_have_the_results_of_runs_changed_at_the_beginning(
        case in prop_oneof![case(&SLOW), case(&FAST)],
        first in 0.0..1.0,
        second in 0.0..1.0,
        changes in [change(), change()],
    ) {
        let network = case.network();
        prop_assume!(is_bounded(&network) && !network.flows.is_empty());
        let [one, other] = changes;
        let changes = [(first, one), (first + second * (1.0 - first), other)];
        let accepted = check_changes(&case, &network, &changes).map_err(TestCaseError::fail)?;
        prop_assume!(accepted > 0);
    }
}

/// Changes a network.
type Edit = fn(&mut Network);

/// A run of one flow at 10 Mb/s, and what becomes of it if it changes at 5 s.
fn changed(change: impl Fn(&mut Network)) -> Result<[Records; 2], ChangeError> {
    let traffic = vec![Traffic::Tcp(tcp("reno"))];
    let mut network = pair(10e6, ms(20), packets(50), traffic, Dur::from_secs(10.0));
    network.sample = ms(100);
    let mut run = begin(&network, 1, true);
    run.run_until(at(&network, 0.5)).unwrap();
    let mut copy = run.fork().unwrap();
    let time = at(&network, 0.5);
    change(&mut network);
    copy.change(time, &network)?;
    Ok([run, copy].map(ended))
}

/// Packets delivered until sample `from` and from there to sample `until`.
fn delivered(records: &Records, [from, until]: [usize; 2]) -> f64 {
    let delivered = &records.flows[0].series.delivered;
    delivered[until] - delivered[from]
}

#[test]
fn a_change_has_its_effect_from_its_time_on() {
    let changes: [(Edit, [f64; 2]); 4] = [
        (|network| network.links[0].rate = Some(5e6), [0.45, 0.55]),
        (|network| network.links[0].loss = 0.05, [0.05, 0.5]),
        (|network| network.links[0].delay = ms(200), [0.3, 0.98]),
        (|network| network.flows[0].stop = at(network, 0.5), [0.0, 0.0]),
    ];
    for (number, (change, [least, most])) in changes.into_iter().enumerate() {
        let [run, copy] = changed(change).unwrap();
        let series = [&run, &copy].map(|records| &records.flows[0].series);
        let queues = [&run, &copy].map(|records| &records.links[0].queue);
        // The last sample is that of the time of the change.
        assert_eq!(series[0].window[..=50], series[1].window[..=50], "change {number}");
        assert_eq!(series[0].sent[..50], series[1].sent[..50], "change {number}");
        assert_eq!(queues[0][..=50], queues[1][..=50], "change {number}");
        let [one, other] = [run, copy].map(|records| delivered(&records, [60, 99]));
        assert!((least..=most).contains(&(other / one)), "change {number}: {other} of {one}");
    }
}

/// CUBIC continues with the window of Reno: at its change nothing is reduced.
#[test]
fn a_law_continues_with_the_window_of_another_one() {
    let [run, copy] = changed(|network| {
        network.flows[0].traffic = Traffic::Tcp(tcp("cubic")).into();
    })
    .unwrap();
    let windows = [&run, &copy].map(|records| &records.flows[0].series.window);
    assert_eq!(windows[0][..=50], windows[1][..=50]);
    assert_ne!(windows[0][80..], windows[1][80..]);
    assert!((windows[1][51] / windows[1][50] - 1.0).abs() < 0.1);
    // The samples have the variables of Reno.
    let names = [run, copy].map(|records| {
        records.flows[0].series.gauges.iter().map(|gauge| gauge.0).collect::<Vec<_>>()
    });
    assert_eq!(names[0], names[1]);
}

/// A queue of one bandwidth-delay product keeps its size, also when something else changes later.
#[test]
fn a_rate_and_later_a_stop_change() {
    let network = |rate: &str, stop: &str| {
        let text = format!(
            r#"
            duration = "8s"
            dumbbell = {{ rate = "{rate}", delay = "20ms", queue = "1bdp" }}
            flow = [{{ controller = "reno", {stop} }}]
            "#
        );
        scenario(&text, 1)
    };
    let mut run = begin(&network("10mbit", ""), 1, true);
    run.change(at_ms(2000), network("5mbit", "")).unwrap();
    run.change(at_ms(4000), network("5mbit", "stop = \"5s\"")).unwrap();
    let records = ended(run);
    let sent = &records.flows[0].series.sent;
    assert!(sent[60] == sent[79] && sent[45] > sent[40], "{sent:?}");
}

/// UDT whose controller is not in the registry is created in advance, with its start.
#[test]
fn a_start_that_a_connection_has_is_not_moved() {
    let text = r#"
        duration = "4s"
        dumbbell = { rate = "10mbit", delay = "10ms", queue = "20p" }
        flow = [{ controller = "python:Mine", protocol = "udt", start = "3s" }]
    "#;
    let mut network = scenario(text, 1);
    let make = |settings: &Settings| AnyController::window(Reno::new(), settings);
    let moved = with_custom(make, |options| {
        let mut run = Simulation::new(&network, 1, options).unwrap();
        network.flows[0].start = at(&network, 0.5);
        run.change(at(&network, 0.2), &network)
    });
    let message = moved.unwrap_err().to_string();
    assert!(
        message.ends_with("the start of python:Mine over UDT cannot change in a run"),
        "{message}"
    );
}

#[test]
fn what_cannot_change_is_refused() {
    let refusals: [(Edit, &str); 5] = [
        (|network| network.links[0].loss_of_acks = true, "only its rate, delay and loss can"),
        (|network| network.links[0].queue = packets(9), "only its rate, delay and loss can"),
        (|network| network.links[0].rate = None, "its rate stays finite"),
        (|network| network.flows[0].start = at(network, 0.7), "it has started"),
        (
            |network| network.flows[0].traffic = Traffic::Tcp(tcp("bbr")).into(),
            "reno cannot become bbr in a run",
        ),
    ];
    for (change, message) in refusals {
        let error = changed(change).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let mut network = pair(1e6, ms(1), packets(9), vec![Traffic::Tcp(tcp("reno"))], ms(1000));
    let mut run = begin(&network, 1, true);
    network.flows[0].traffic = Traffic::Tcp(tcp("cubic")).into();
    run.change(at(&network, 0.5), &network).unwrap();
    let early = run.change(at(&network, 0.3), &network).unwrap_err().to_string();
    assert_eq!(early, "a change at 0.3 s is before one at 0.5 s, which the run has");
    run.run();
    let late = run.change(at(&network, 0.5), &network).unwrap_err().to_string();
    assert!(late.starts_with("what happens at 0.5 s is determined already"), "{late}");
}
