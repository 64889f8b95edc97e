//! Queues on all links: the transmitter is busy while packets wait (work conservation), and the
//! integral of the queue length is the total waiting time of the packets (Little's law).

use cwnd_sim::network::{Model, Network};
use cwnd_sim::record::LinkRecord;
use cwnd_sim::scenario::Scenario;
use cwnd_sim::{Options, Simulation};
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::{Arc, Mutex};

/// Every packet has 1000 bytes.
const PACKET_BITS: f64 = 8000.0;

/// Sampling interval in seconds, shorter than the transmission of a packet.
const SAMPLE: f64 = 50e-6;

/// Samples up to which departures are checked: a tap does not show packets that arrive after the
/// end.
const OBSERVED: usize = 28_000;

/// Packets waiting from which a link is backlogged: it does not empty and fill again between two
/// samples.
const BACKLOG: f64 = 3.0;

const QUEUES: &[&str] = &[
    "queue = \"5p\"",
    "queue = \"50p\"",
    "queue = \"20kb\"",
    "queue = { kind = \"red\", limit = \"60p\", min = \"4p\", max = \"20p\", weight = 0.02 }",
    "queue = { kind = \"codel\", limit = \"60p\" }",
    "queue = { kind = \"codel\", limit = \"60p\", target = \"100ms\" }",
    "queue = { kind = \"fq_codel\", limit = \"60p\", quantum = 300 }",
    "queue = { kind = \"fq_codel\", limit = \"30p\", flows = 2, target = \"100ms\" }",
    "queue = { kind = \"fq\", limit = \"60p\", flow_limit = 20 }",
    "queue = { kind = \"pie\", limit = \"60p\" }",
    "queue = { kind = \"dualpi2\", limit = \"60p\" }",
];

/// Rate, delay, and how they vary.
const LINKS: &[&str] = &[
    "rate = \"2mbit\"\ndelay = \"5ms\"",
    "rate = \"8mbit\"\ndelay = \"20ms\"",
    "rate = \"10mbit\"\ndelay = 0",
    "rate = \"8mbit\"\ndelay = \"5ms\"\nchanges = [{ at = 0.3, rate = \"2mbit\" }, { at = 0.8, rate = \"20mbit\" }]",
    "rate = \"8mbit\"\ndelay = \"5ms\"\nchanges = [{ at = 0.3, rate = 0 }, { at = 0.4, rate = \"8mbit\", over = 0.5 }]",
    "rate = \"8mbit\"\ndelay = \"5ms\"\nchanges = [{ at = 0.3, delay = \"30ms\", loss = 0.05 }, { at = 0.6, delay = 0 }]",
    "delay = \"5ms\"\nmodel = { kind = \"cellular\", max = \"10mbit\" }",
    "delay = \"5ms\"\ntrace = { rate = [2, 3, 5, 9, 10, 13, 20] }\nback = { rate = \"10mbit\" }",
    "model = { kind = \"leo\", interval = \"200ms\", outage = \"20ms\", rate = \"2mbit..20mbit\", delay = \"1ms..9ms\" }",
];

/// What applies to each packet.
const KEYS: &[&str] = &[
    "loss = 0.01",
    "loss = { kind = \"gilbert_elliott\", p = 0.01, r = 0.3 }",
    "blackout = [{ at = 0.2, for = 0.1 }]",
    "jitter = \"10ms\"",
    "reorder = { probability = 0.05, delay = \"10ms\" }",
    "ack_aggregation = \"5ms\"",
    "ack_thinning = \"5ms\"",
    "policer = { rate = \"3mbit\", burst = \"20kb\" }",
    "shaper = { rate = \"3mbit\", burst = \"20kb\" }",
];

const TRAFFIC: &[&str] = &[
    "[[flow]]\ncontroller = \"reno\"",
    "[[flow]]\ncontroller = \"cubic\"\ncount = 3\nstagger = \"50ms\"",
    "[[flow]]\ncontroller = \"cubic\"\ntcp = { conventions = \"linux\" }",
    "[[flow]]\ncontroller = \"reno\"\ntcp = { ecn = true }",
    "[[flow]]\ncontroller = \"udt\"",
    "[[flow]]\ncontroller = \"reno\"\nsource = { kind = \"on_off\", on = \"50ms\", off = \"20ms\" }",
    "[[flow]]\ncontroller = \"cubic\"\nsource = { kind = \"limited\", rate = \"2mbit\" }",
    "[[flow]]\ncontroller = \"reno\"\nsource = { kind = \"request\", sizes = 96000, think = \"10ms\" }",
    "[[flow]]\ncontroller = \"reno\"\narrivals = { rate = 20, sizes = { kind = \"list\", bytes = [960, 9600, 96000] } }",
    "[[cbr]]\nrate = \"5mbit\"\npacket = 1000\njitter = 0.5",
    "[[cbr]]\nrate = \"12mbit\"\npacket = 1000\non = \"50ms\"\noff = \"100ms\"",
    "[[pareto]]\nrate = \"10mbit\"\npacket = 1000\non = \"20ms\"\noff = \"50ms\"",
];

/// A scenario whose sources stop half a second before its end.
fn scenario() -> impl Strategy<Value = String> {
    let keys = prop::sample::subsequence(KEYS, 0..3);
    let groups = prop::collection::vec(select(TRAFFIC), 1..4);
    // A link has one process of losses.
    let valid = |toml: &String| !toml.contains("gilbert") || toml.matches("loss = ").count() == 1;
    let toml =
        (select(QUEUES), select(LINKS), keys, groups).prop_map(|(queue, link, keys, groups)| {
            let groups: String =
                groups.iter().map(|group| format!("{group}\nstop = \"1s\"\n")).collect();
            format!(
                "duration = \"1.5s\"\nwarmup = \"0s\"\nsample = \"50us\"\n\
             tcp = {{ packet = 960, header = 40, syn = false }}\naccess = {{ rate = \"1gbit\" }}\n\
             [dumbbell]\n{link}\n{queue}\n{}\n{groups}",
                keys.join("\n")
            )
        });
    toml.prop_filter("one process of losses", valid)
}

/// Runs the network. Returns the record of the first link and, if it is watched, the departures in
/// seconds.
fn run(network: &Network, seed: u64, watched: bool) -> (LinkRecord, Vec<f64>) {
    let mut simulation = Simulation::new(network, seed, &Options::default()).unwrap();
    let departures = Arc::new(Mutex::new(Vec::new()));
    if watched {
        let seen_at = departures.clone();
        simulation.tap(0, move |seen| seen_at.lock().unwrap().push(seen.at as f64 / 1e9));
    }
    simulation.run();
    let link = simulation.finish().links.remove(0);
    let departures = departures.lock().unwrap().clone();
    (link, departures)
}

/// The longest ranges of samples at all of which the link is backlogged.
fn backlogs(queue: &[f64]) -> Vec<[usize; 2]> {
    let mut found: Vec<[usize; 2]> = Vec::new();
    for (at, _) in queue.iter().enumerate().filter(|&(_, &length)| length >= BACKLOG) {
        match found.last_mut() {
            Some([_, last]) if *last + 1 == at => *last = at,
            _ => found.push([at, at]),
        }
    }
    found
}

/// While packets wait, the link carries what its rate and its shaper permit, up to the packets in
/// transmission at both ends.
fn check_work_conservation(network: &Network, record: &LinkRecord, departures: &[f64]) {
    let link = &network.links[0];
    let impairments = link.impairments.as_deref();
    let shaper = impairments.and_then(|own| own.shaper).map(|shaper| shaper.rate);
    // Opportunities of 1504 bytes: one may be used in part before, and one is at the end. A shaper
    // owes the tokens of a packet.
    let model = impairments.and_then(|own| own.model.as_ref());
    let opportunities = matches!(model, Some(Model::Trace(_) | Model::Cellular(_)));
    let packets = 1.001
        + if opportunities { 2.0 * 1.504 } else { 0.0 }
        + if shaper.is_some() { 1.0 } else { 0.0 };
    for [first, last] in backlogs(&record.queue[..OBSERVED]) {
        let [from, until] = [first, last].map(|at| at as f64 * SAMPLE);
        let carried = departures.partition_point(|&at| at <= until)
            - departures.partition_point(|&at| at <= from);
        let capacity = match &record.capacity[..] {
            [] => link.rate.unwrap().min(shaper.unwrap_or(f64::INFINITY)) * (until - from),
            varying => varying[first..last].iter().sum::<f64>() * SAMPLE,
        };
        let difference = carried as f64 - capacity / PACKET_BITS;
        assert!(difference >= -packets, "{difference} packets from {from} s to {until} s");
        assert!(
            shaper.is_some() || difference <= packets,
            "{difference} from {from} s to {until} s"
        );
    }
}

/// The integral of the sampled queue length is the total wait of the packets.
fn check_littles_law(queue: &str, record: &LinkRecord) {
    let integral = record.queue.iter().sum::<f64>() * SAMPLE;
    let waits =
        if record.departures == 0 { 0.0 } else { record.departures as f64 * record.delay.mean };
    // The samples that count a packet differ from its wait by less than an interval.
    let tolerance = SAMPLE * record.arrivals as f64 + 1e-9;
    assert!(integral >= waits - tolerance, "{integral} and {waits} packet seconds: {record:?}");
    // Packets that these disciplines drop have waited.
    let drops_later = ["codel", "dualpi2"].iter().any(|kind| queue.contains(kind));
    if record.drops == 0 || !drops_later {
        assert!(integral <= waits + tolerance, "{integral} and {waits} packet seconds: {record:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn links_conserve_work_and_obey_littles_law(toml in scenario(), seed in 1u64..1000) {
        let network = match Scenario::from_toml(&toml, "random") {
            Ok(scenario) => scenario.network(seed).unwrap(),
            Err(error) => panic!("{error}\n{toml}"),
        };
        let (record, _) = run(&network, seed, false);
        let in_transmission = 1000.0 * record.departures as f64 - record.bytes_departed;
        prop_assert!((0.0..=1000.0).contains(&in_transmission), "{in_transmission}");
        let (watched, departures) = run(&network, seed, true);
        prop_assert_eq!(&record.queue, &watched.queue);
        check_work_conservation(&network, &watched, &departures);
        // Packets that still wait at the end have no wait yet.
        if record.arrivals == record.departures + record.drops {
            check_littles_law(&toml, &record);
        }
    }
}
