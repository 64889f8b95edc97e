//! Lookahead does not change results: runs with and without lookahead, at once and in slices, seen
//! and unseen, are equal bit by bit.
//!
//! Without lookahead packets are processed in the order of time and the departures of links are
//! events. This is the reference.

use crate::common::random::{FAST, SLOW, case, config, is_bounded};
use crate::common::results::difference;
use crate::common::wire::Capture;
use crate::common::{self, MS, RED, ms, packets, pair, scenario};
use cwnd::Dur;
use cwnd_sim::network::{Network, Queue, QueueLimit, Red, TcpExtensions, Traffic};
use cwnd_sim::record::Records;
use cwnd_sim::{Options, Simulation};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Networks with many simultaneous events.
const NETWORKS: [&str; 11] = [
    // After one flow ends, the other one sends at the rate of its access link.
    r#"
    dumbbell = { rate = "10mbit", delay = "50ms", queue = "5p" }
    access = { rate = "10mbit" }
    flow = [{ controller = "daimd(capacity=10mbit)", start = "50ms", count = 2, bytes = 1000000,
              tcp = { packet = 200, header = 0, window = 50 } }]
    "#,
    // Links that are idle at each arrival.
    r#"
    dumbbell = { rate = "10mbit", delay = "1ms", queue = "20p", loss = 0.001 }
    access = { rate = "100mbit" }
    flow = [{ controller = "udt", count = 3, start = "0s..0.1s" },
            { controller = "daimd", reverse = true }, { controller = "reno" }]
    "#,
    // Packets that arrive at the time of their transmission.
    r#"
    dumbbell = { rate = "50mbit", delay = "1ms", queue = { kind = "red", limit = "200p" } }
    access = { rate = "infinite" }
    flow = [{ controller = "daimd", count = 4, tcp = { packet = 1500, window = 10 } },
            { controller = "daimd(capacity=5mbit)", start = "50ms" }]
    "#,
    // No delay and a queue of one packet.
    r#"
    dumbbell = { rate = "5mbit", delay = 0, queue = "1p", loss = 0.001, loss_of_acks = true }
    flow = [{ controller = "udt", count = 6, start = "0s..0.1s" }]
    cbr = [{ rate = "1mbit", packet = 200, on = "0.3s", off = "0.2s" }]
    "#,
    // Consecutive links of equal rate: a packet arrives at the time of the previous packet's
    // departure.
    r#"
    chain = { routers = 4, rate = "10mbit", delay = "1ms", queue = "20p" }
    flow = [{ controller = "daimd", tcp = { packet = 1000 } }]
    cbr = [{ rate = "2mbit", packet = 1000, stop = "0.3s" }]
    "#,
    // A path so long that many packets are in flight before the first one arrives.
    r#"
    dumbbell = { rate = "10mbit", delay = "200ms", queue = "50p" }
    access = { rate = "100mbit" }
    flow = [{ controller = "udt", count = 2 }]
    "#,
    // A link so slow that the acknowledgement delay is shorter than a packet's transmission time.
    r#"
    dumbbell = { rate = "100kbit", delay = "20ms" }
    flow = [{ controller = "reno", start = "300ms" }]
    "#,
    // A paced sender sends two packets at once after a drop: the first one causes a negative
    // acknowledgement.
    r#"
    dumbbell = { rate = "20mbit", delay = "0.8ms", queue = { kind = "red", limit = "10p", min = "1p", max = "5p",
                 max_p = 1.0, weight = 0.1 } }
    flow = [{ controller = "udt" }]
    "#,
    // Access links that are longer than the shared one.
    r#"
    dumbbell = { rate = "100mbit", delay = "1ms" }
    access = { rate = "200mbit", delay = "10ms" }
    tcp = { timestamps = true }
    flow = [{ controller = "reno", count = 3 }]
    "#,
    // Applications whose times coincide with those of packets, over all transports.
    r#"
    dumbbell = { rate = "10mbit", delay = "4ms", queue = "20p" }
    tcp = { packet = 956, header = 44 }
    flow = [{ controller = "reno", source = { kind = "limited", rate = "2mbit" } },
            { controller = "cubic", source = { kind = "on_off", on = "100ms", off = "4ms" }, stop = "1s" },
            { controller = "udt", source = { kind = "on_off", on = "12ms", off = "8ms", rate = "5mbit" } },
            { controller = "reno", source = { kind = "request", sizes = 1000 } },
            { controller = "udt", protocol = "udt", source = { kind = "request", sizes = 8000, think = "4ms" } }]
    "#,
    // Many short transfers beside a long one.
    r#"
    dumbbell = { rate = "50mbit", delay = "10ms", queue = "100p" }
    flow = [{ controller = "cubic" },
            { controller = "reno", arrivals = { load = 0.5, sizes = { kind = "pareto", mean = "20kb", shape = 1.3 } } }]
    "#,
];

/// How a network is run.
#[derive(Clone, Copy, Debug)]
struct Way {
    lookahead: bool,
    /// The link that is captured while the controllers' events are recorded.
    watched: Option<usize>,
    /// The number of events in a slice.
    slice: u64,
}

/// Runs to the end. Returns the records and the capture.
fn run(network: &Network, seed: u64, way: Way) -> (Records, Vec<u8>) {
    let Way { lookahead, watched, slice } = way;
    let options = Options { lookahead, record_events: watched.is_some(), ..Options::default() };
    let mut simulation = Simulation::new(network, seed, &options).unwrap();
    let capture = watched.map(|link| Capture::of(&mut simulation, network, link));
    while !simulation.run_for(slice) {}
    let records = simulation.finish();
    (records, capture.map_or(Vec::new(), Capture::finish))
}

/// Runs a network in all ways, and watches each of `links`. Returns a description of the first
/// difference between the results.
fn check(network: &Network, seed: u64, links: Range<usize>, slice: u64) -> Result<(), String> {
    let at_once = u64::MAX;
    let unwatched = [at_once, slice].map(|slice| {
        let way = Way { lookahead: true, watched: None, slice };
        (way, run(network, seed, way).0)
    });
    for watched in links.map(Some) {
        let reference = Way { lookahead: false, watched, slice: at_once };
        let (expected, capture) = run(network, seed, reference);
        let way = Way { lookahead: true, watched, slice: at_once };
        let (records, seen) = run(network, seed, way);
        for (way, records) in unwatched.iter().chain([&(way, records)]) {
            if let Some(difference) = difference(&expected, records) {
                return Err(format!("{reference:?} and {way:?}: {difference}"));
            }
        }
        if capture != seen {
            let at = capture.iter().zip(&seen).position(|(one, other)| one != other);
            return Err(format!("{reference:?} and {way:?}: captures differ at byte {at:?}"));
        }
    }
    Ok(())
}

/// The network with TCP of RFC 5681 and RFC 6675.
fn without_extensions(network: &Network) -> Network {
    let mut network = network.clone();
    for flow in &mut network.flows {
        if let Traffic::Tcp(tcp) = &mut Arc::make_mut(&mut flow.traffic) {
            tcp.extensions = TcpExtensions::default();
        }
    }
    network
}

#[test]
fn lookahead_does_not_change_results_of_fixed_networks() {
    for text in NETWORKS {
        // Samples that are that frequent take most of the time.
        for (sample, duration, every_link) in [("1s", "1.5s", true), ("40us", "0.6s", false)] {
            let header =
                format!("duration = \"{duration}\"\nwarmup = \"0.2s\"\nsample = \"{sample}\"");
            let recent = scenario(&format!("{header}\n{text}"), 1);
            for network in [without_extensions(&recent), recent] {
                let links = 0..if every_link { network.links.len() } else { 1 };
                let checked = check(&network, 1, links, 7);
                assert!(checked.is_ok(), "{text}: {checked:?}");
            }
        }
    }
}

/// A link that is overloaded throughout: the warm-up ends, samples are taken and the run ends
/// within a busy period.
#[test]
fn both_paths_of_a_link_have_equal_records() {
    let red =
        |wait, gentle| Queue::Red(Red { limit: 25, weight: 0.01, gentle, wait, ecn: false, ..RED });
    let bytes = Queue::DropTail { limit: QueueLimit::Bytes(20_000) };
    for queue in [packets(1), packets(20), bytes, red(true, true), red(false, false)] {
        for jitter in [0.0, 0.3, 1.0] {
            let source = |rate, packet| Traffic::Cbr { rate, packet, schedule: None, jitter };
            let traffic = vec![source(5e6, 1000), source(5e6, 1000), source(2e6, 150)];
            let mut network = pair(8e6, ms(3), queue, traffic, ms(1500));
            network.warmup = Dur::from_nanos(600_300_000);
            network.sample = MS;
            let records = [false, true].map(|lookahead| {
                let options = Options { lookahead, ..Options::default() };
                common::run_with(&network, 1, &options)
            });
            assert_eq!(difference(&records[0], &records[1]), None, "{queue:?}, jitter {jitter}");
            let link = &records[0].links[0];
            assert!(link.drops > 100 && link.marks == 0 && link.delay.mean > 0.0);
            let always_busy = link.queue.iter().skip(300).all(|&length| length > 0.0);
            assert!(always_busy || queue == packets(1), "{queue:?}, jitter {jitter}");
            assert!(records[1].events < records[0].events);
        }
    }
}

/// Flows of all kinds over each discipline that decides at departure, with the packets of several
/// at the same time.
#[test]
fn disciplines_that_decide_at_departure_have_equal_records() {
    for queue in ["codel", "fq_codel", "fq", "pie", "dualpi2"] {
        let text = format!(
            r#"
            duration = "8s"
            warmup = "2.0001s"
            sample = "10ms"
            dumbbell = {{ rate = "10mbit", delay = "10ms", queue = {{ kind = "{queue}", limit = "100p" }}, loss = 0.001 }}
            flow = [{{ controller = "cubic", count = 2 }}, {{ controller = "udt", protocol = "udt" }},
                    {{ controller = "reno", reverse = true, tcp = {{ ecn = true }} }}]
            cbr = [{{ rate = "2mbit", packet = 1250 }}]
            "#
        );
        let network = scenario(&text, 1);
        let checked = check(&network, 1, 0..1, 1000);
        assert!(checked.is_ok(), "{queue}: {checked:?}");
        let (records, _) =
            run(&network, 1, Way { lookahead: true, watched: None, slice: u64::MAX });
        let link = &records.links[0];
        assert!(link.drops > 10 && link.delay.mean > 0.0, "{queue}: {link:?}");
        // The time average of the queue and the mean of its samples agree (Little's law).
        let samples = &link.queue[200..];
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        assert!((link.mean_queue / mean - 1.0).abs() < 0.2, "{queue}: {mean} {}", link.mean_queue);
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn lookahead_does_not_change_results(case in prop_oneof![case(&SLOW), case(&FAST)]) {
        let network = case.network();
        prop_assume!(is_bounded(&network));
        let watched = case.watched.index(network.links.len());
        check(&network, case.seed, watched..watched + 1, case.slice).map_err(TestCaseError::fail)?;
    }
}
