//! Small networks, without scenario files.

#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod random;
pub(crate) mod results;
pub(crate) mod wire;

use cwnd::{Dur, Time};
use cwnd_sim::network::{
    Conventions, Flow, Link, Network, Queue, QueueLimit, Recovery, Tcp, TcpExtensions, Traffic,
};
use cwnd_sim::record::Records;
use cwnd_sim::{Options, Simulation};

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

/// Returns TCP with the conventions `rfc5681`, packets of 1000 bytes on the wire, and an immediate acknowledgement of
/// each packet.
pub(crate) fn tcp(controller: &str) -> Tcp {
    Tcp {
        controller: controller.into(),
        bytes: None,
        recovery: Recovery::Sack,
        conventions: Conventions::Rfc,
        packet: 960,
        packet_changes: Vec::new(),
        header: 40,
        ack: 40,
        initial_window: 2,
        window: 1_000_000,
        delayed_acks: false,
        ack_delay: ms(40),
        ecn: false,
        l4s: false,
        timestamps: None,
        limited_transmit: true,
        syn: false,
        byte_counting: true,
        granularity: MS,
        min_rto: ms(200),
        max_rto: ms(60_000),
        initial_rto: ms(1000),
        overhead: Some(Dur::ZERO),
        extensions: TcpExtensions::default(),
    }
}

/// Returns a one-way link without loss.
pub(crate) fn link(from: usize, to: usize, rate: f64, delay: Dur, queue: Queue) -> Link {
    Link {
        name: format!("{from}-{to}"),
        from,
        to,
        rate: Some(rate),
        delay,
        queue,
        loss: 0.0,
        loss_of_acks: false,
        impairments: None,
    }
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

/// Returns a network of two nodes: a bottleneck, and a link of infinite rate with the same delay in the reverse
/// direction.
pub(crate) fn pair(
    rate: f64,
    delay: Dur,
    queue: Queue,
    traffic: Vec<Traffic>,
    duration: Dur,
) -> Network {
    let mut back = link(1, 0, rate, delay, packets(u32::MAX));
    back.rate = None;
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
