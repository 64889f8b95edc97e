//! A run, from the first event to the records.

use crate::engine::tap::Seen;
use crate::flows::settings;
use crate::network::{Network, Traffic};
use crate::options::{Options, SimulationError};
use crate::partition::{End, Partition};
use crate::partitioning::Partitioning;
use crate::record::Records;
use crate::sync::Peer;
use cwnd::Settings;
use std::sync::Arc;

/// A network during a run. Simulations share no mutable state and may run in parallel.
pub struct Simulation {
    /// The network with the links of the hosts' processing times behind its own `links`.
    network: Arc<Network>,
    links: usize,
    seed: u64,
    run: Run,
}

enum Run {
    One(Box<Partition>),
    Two(Box<[Partition; 2]>, Partitioning),
}

impl Simulation {
    /// Creates a run of `network` with this seed. A network passed by reference is copied.
    ///
    /// # Errors
    /// A network that is not [valid](Network::validate) or too large for its duration, or an
    /// unknown controller.
    pub fn new(
        network: impl Into<Arc<Network>>,
        seed: u64,
        options: &Options,
    ) -> Result<Self, SimulationError> {
        let network = network.into();
        network.validate()?;
        let links = network.links.len();
        let network = network.with_processing();
        // Controllers that are not in the registry are created once, in one partition.
        let divisible = options.two_threads && options.custom.is_none();
        let run = match divisible.then(|| Partitioning::find(&network)).flatten() {
            None => Run::One(Box::new(Partition::new(&network, seed, options, None)?)),
            Some(partitioning) => {
                let [first, second] = Peer::pair(partitioning.lookahead);
                let first =
                    Partition::new(&network, seed, options, Some((&partitioning, 0, first)))?;
                let second =
                    Partition::new(&network, seed, options, Some((&partitioning, 1, second)))?;
                Run::Two(Box::new([first, second]), partitioning)
            }
        };
        Ok(Simulation { network, links, seed, run })
    }

    /// Returns the settings of the controller of flow number `flow`; `None` for a flow without a
    /// controller. A controller created with the flow's specification and these settings reproduces
    /// its recorded outputs bit by bit.
    pub fn settings(&self, flow: usize) -> Option<Settings> {
        match &*self.network.flows[flow].traffic {
            Traffic::Tcp(tcp) => Some(settings(tcp, self.seed, flow)),
            Traffic::Udt(udt) => crate::udt::settings(udt, self.seed, flow),
            Traffic::Cbr { .. } | Traffic::Pareto { .. } => None,
        }
    }

    /// Returns the number of threads of the run.
    pub fn threads(&self) -> usize {
        match &self.run {
            Run::One(_) => 1,
            Run::Two(..) => 2,
        }
    }

    /// Calls `watch` for every packet that link number `link` transmits.
    pub fn tap(&mut self, link: usize, watch: impl FnMut(&Seen) + Send + 'static) {
        match &mut self.run {
            Run::One(partition) => partition.set_tap(link, Box::new(watch)),
            Run::Two(partitions, partitioning) => {
                partitions[partitioning.link_start(&self.network, link)]
                    .set_tap(link, Box::new(watch));
            }
        }
    }

    /// Runs to the end.
    pub fn run(&mut self) {
        while !self.run_for(u64::MAX) {}
    }

    /// Processes about `events` events. Returns whether the end of the run is reached.
    pub fn run_for(&mut self, events: u64) -> bool {
        match &mut self.run {
            Run::One(partition) => partition.run_for(events),
            Run::Two(partitions, _) => {
                let [first, second] = &mut **partitions;
                let windows = (events / first.events_per_window()).max(1);
                std::thread::scope(|scope| {
                    scope.spawn(|| second.run_windows(windows));
                    first.run_windows(windows)
                })
            }
        }
    }

    /// Returns the fraction of simulated time that has passed.
    pub fn progress(&self) -> f64 {
        match &self.run {
            Run::One(partition) => partition.progress(),
            Run::Two(partitions, _) => partitions[0].progress(),
        }
    }

    /// Returns the records of a run that has reached its end.
    pub fn finish(self) -> Records {
        let (mut records, ends) = match self.run {
            Run::One(partition) => partition.finish(),
            Run::Two(partitions, partitioning) => {
                let [first, second] = *partitions;
                merge(&self.network, &partitioning, [first.finish(), second.finish()])
            }
        };
        records.links.truncate(self.links);
        for (flow, end) in records.flows.iter_mut().zip(ends) {
            flow.completed = end.completed();
        }
        records
    }
}

/// Merges the records of both partitions. Each end of a flow and each link is recorded by its own
/// partition.
fn merge(
    network: &Network,
    partitioning: &Partitioning,
    parts: [(Records, Vec<End>); 2],
) -> (Records, Vec<End>) {
    let ends_of = |part: usize, flow: usize| parts[part].1[flow];
    let ends = network.flows.iter().enumerate().map(|(index, flow)| {
        let [source, sink] = partitioning.ends(network, &flow.path);
        End { total: ends_of(source, index).total, ..ends_of(sink, index) }
    });
    let ends = ends.collect();
    let mut parts = parts.map(|(records, _)| records);
    let mut merged = Records {
        time: std::mem::take(&mut parts[0].time),
        packets: parts[0].packets + parts[1].packets,
        events: parts[0].events + parts[1].events,
        ..Records::default()
    };
    for (index, flow) in network.flows.iter().enumerate() {
        let [source, sink] = partitioning.ends(network, &flow.path);
        let mut record = std::mem::take(&mut parts[source].flows[index]);
        let other = std::mem::take(&mut parts[1 - source].flows[index]);
        record.packets_lost += other.packets_lost;
        if source != sink {
            record.packets_delivered = other.packets_delivered;
            record.bytes_delivered = other.bytes_delivered;
            record.packets_received = other.packets_received;
            record.packets_marked = other.packets_marked;
            record.series.delivered = other.series.delivered;
            record.series.delivered_bytes = other.series.delivered_bytes;
        }
        merged.flows.push(record);
    }
    for link in 0..network.links.len() {
        let part = &mut parts[partitioning.link_start(network, link)];
        merged.links.push(std::mem::take(&mut part.links[link]));
    }
    (merged, ends)
}
