//! Small networks, without scenario files.

pub(crate) mod random;
pub(crate) mod results;
pub(crate) mod wire;

use cwnd::record::Entry;
use cwnd::{AnyController, Dur, MakeController, Settings, Time};
use cwnd_sim::metrics::formula;
use cwnd_sim::network::{Flow, Link, Network, Queue, QueueLimit, Red, Tcp, Traffic, Udt};
use cwnd_sim::record::{FlowRecord, Records};
use cwnd_sim::scenario::Scenario;
use cwnd_sim::{Options, Simulation};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub(crate) const MS: Dur = Dur::from_millis(1);

pub(crate) fn ms(count: u64) -> Dur {
    Dur::from_millis(count)
}

/// Returns the time `count` milliseconds after the start.
pub(crate) fn at_ms(count: u64) -> Time {
    Time::from_nanos(count * 1_000_000)
}

pub(crate) fn packets(limit: u32) -> Queue {
    Queue::DropTail { limit: QueueLimit::Packets(limit) }
}

/// Returns TCP with the conventions `rfc5681`, packets of 1000 bytes on the wire, and an immediate
/// acknowledgement of each packet.
pub(crate) fn tcp(controller: &str) -> Tcp {
    let network = scenario(
        r#"
        duration = 1
        dumbbell = { rate = "1mbit", delay = 0 }
        tcp = { conventions = "rfc5681", packet = 960, initial_window = 2, delayed_acks = false, syn = false,
                min_rto = "200ms", overhead = "0s" }
        flow = [{ controller = "reno" }]
        "#,
        1,
    );
    let Traffic::Tcp(tcp) = &*network.flows[0].traffic else { unreachable!() };
    Tcp { controller: controller.into(), ..tcp.clone() }
}

/// Returns UDT with packets of 1000 bytes on the wire.
pub(crate) fn udt(controller: &str) -> Udt {
    Udt { controller: controller.into(), bytes: None, packet: 956, header: 44, window: 10_000 }
}

/// RED that marks, for packets of 1000 bytes.
pub(crate) const RED: Red = Red {
    limit: 1000,
    min: 5.0,
    max: 15.0,
    max_p: 0.1,
    weight: 0.002,
    gentle: true,
    wait: true,
    ecn: true,
    mark_p: 1.0,
    mean_packet: 1000,
};

/// Returns a one-way link without loss.
pub(crate) fn link(from: usize, to: usize, rate: f64, delay: Dur, queue: Queue) -> Link {
    Link::new(format!("{from}-{to}"), [from, to], Some(rate), delay, queue)
}

pub(crate) fn flow(traffic: Traffic) -> Flow {
    Flow {
        name: "flow".into(),
        path: [0].into(),
        back: [1].into(),
        start: Time::ZERO,
        stop: Time::NEVER,
        traffic: traffic.into(),
        measured: true,
        bytes: None,
        application: None,
    }
}

/// Returns a network of two nodes: a bottleneck, and a link of infinite rate with the same delay in
/// the reverse direction.
pub(crate) fn pair(
    rate: f64,
    delay: Dur,
    queue: Queue,
    traffic: Vec<Traffic>,
    duration: Dur,
) -> Network {
    let back = Link::new("1-0", [1, 0], None, delay, Queue::INFINITE);
    Network {
        name: "pair".into(),
        nodes: vec!["source".into(), "sink".into()],
        links: vec![link(0, 1, rate, delay, queue), back],
        flows: traffic.into_iter().map(flow).collect(),
        duration,
        warmup: Dur::ZERO,
        sample: MS,
    }
}

/// Returns the network of a scenario.
pub(crate) fn scenario(toml: &str, seed: u64) -> Network {
    let scenario = Scenario::from_toml(toml, "test").unwrap_or_else(|error| panic!("{error}"));
    scenario.network(seed).unwrap()
}

/// Runs a scenario to the end.
pub(crate) fn simulate(toml: &str, seed: u64) -> Records {
    run(&scenario(toml, seed), seed)
}

/// Runs to the end.
pub(crate) fn run(network: &Network, seed: u64) -> Records {
    run_with(network, seed, &Options::default())
}

/// Runs to the end and records the controllers' events.
pub(crate) fn run_recorded(network: &Network, seed: u64) -> Records {
    run_with(network, seed, &Options { record_events: true, ..Options::default() })
}

pub(crate) fn run_with(network: &Network, seed: u64, options: &Options) -> Records {
    let mut simulation = Simulation::new(network, seed, options).unwrap();
    simulation.run();
    simulation.finish()
}

/// Makes the controllers of a test with its function.
struct Custom<F>(F);

impl<F> fmt::Debug for Custom<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("custom")
    }
}

impl<F> fmt::Display for Custom<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl<F: Fn(&Settings) -> AnyController + Send + Sync> MakeController for Custom<F> {
    fn controller(&self, settings: &Settings) -> AnyController {
        self.0(settings)
    }
}

/// Calls `run` with options by which `make` makes the controllers that are not in the registry.
pub(crate) fn with_custom<R>(
    make: impl Fn(&Settings) -> AnyController + Send + Sync + 'static,
    run: impl FnOnce(&Options) -> R,
) -> R {
    let make: Arc<dyn MakeController> = Arc::new(Custom(make));
    run(&Options { custom: Some(&|_| Some(make.clone())), ..Options::default() })
}

/// Returns the recorded events of a flow's controller.
pub(crate) fn entries(flow: &FlowRecord) -> &[Entry] {
    &flow.events.as_ref().unwrap().entries
}

/// Returns the samples of a controller's variable.
pub(crate) fn gauge<'a>(flow: &'a FlowRecord, name: &str) -> &'a [f64] {
    &flow.series.gauges.iter().find(|gauge| gauge.0 == name).unwrap().1
}

/// Returns the mean of a sampled series in a range of seconds.
pub(crate) fn mean(records: &Records, values: &[f64], seconds: Range<f64>) -> f64 {
    let inside = records.time.iter().zip(values).filter(|(time, _)| seconds.contains(*time));
    formula::mean(&inside.map(|(_, value)| *value).collect::<Vec<_>>())
}

/// Returns Jain's fairness index of the packets delivered.
pub(crate) fn jain(records: &Records) -> f64 {
    let shares = records.flows.iter().map(|flow| flow.packets_delivered as f64);
    formula::jain(&shares.collect::<Vec<_>>())
}

/// Returns the table of a flow, with these other keys.
pub(crate) fn flow_table(controller: &str, keys: &str) -> String {
    format!("[[flow]]\ncontroller = \"{controller}\"\n{keys}\n")
}

/// Returns the share of the first of two flows in the packets delivered.
pub(crate) fn share(records: &Records) -> f64 {
    let [first, second] = [0, 1].map(|at| records.flows[at].packets_delivered as f64);
    first / (first + second)
}

/// Returns the fraction of the packets that the queue of the first link drops.
pub(crate) fn loss(records: &Records) -> f64 {
    records.links[0].drops as f64 / records.links[0].arrivals as f64
}
