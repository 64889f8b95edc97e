//! Partitioning of a network for two threads at its longest links, whose delay is the lookahead of
//! the partitions.

use crate::network::{Link, Network, Traffic, simulated};
use cwnd::{Controller, Dur, MakeController, Settings};
use std::collections::HashMap;
use std::sync::Arc;

/// The minimum share of the work of a partition.
const MIN_SHARE: f64 = 0.2;
/// The minimum number of packets of 1000 bytes that a path between the partitions carries in the
/// lookahead: with fewer, waiting costs more than the second thread gains.
const MIN_PACKETS: f64 = 100.0;
/// The minimum delay of the links between the partitions.
const MIN_DELAY: Dur = Dur::from_nanos(1000);
/// The work of a sender and of a receiver, relative to each other.
const SOURCE_WORK: f64 = 2.0;
const SINK_WORK: f64 = 1.0;

/// A network's two partitions, 0 and 1.
pub(crate) struct Partitioning {
    /// For each node its partition.
    partition: Vec<usize>,
    /// The minimum delay of the links between the partitions.
    pub lookahead: Dur,
}

impl Partitioning {
    /// Finds the partitioning at the longest links that gives both partitions enough work; `None`
    /// if there is none.
    pub(crate) fn find(network: &Network) -> Option<Self> {
        let delays = network.links.iter().map(lookahead_of);
        let mut delays: Vec<Dur> = delays.filter(|&delay| delay >= MIN_DELAY).collect();
        delays.sort_unstable();
        delays.dedup();
        let mut known = HashMap::new();
        let flows = network.flows.iter();
        let paced: Vec<_> = flows.map(|flow| is_paced(&flow.traffic, &mut known)).collect();
        // The shorter the links between the partitions may be, the smaller the pieces: if a
        // lookahead gives both partitions enough work, shorter ones do so too.
        let at = |&delay: &Dur| Self::at(network, &paced, delay);
        let longest = delays.partition_point(|delay| at(delay).is_some()).checked_sub(1)?;
        let worthwhile = |it: &Self| it.packets_in_lookahead(network) >= MIN_PACKETS;
        at(&delays[longest]).filter(|it| worthwhile(it) && it.is_crossed_once(network))
    }

    /// Divides the network at all links with a delay of at least `lookahead`. `paced` has for each
    /// flow whether its controller is paced.
    fn at(network: &Network, paced: &[bool], lookahead: Dur) -> Option<Self> {
        let ends = network.links.iter().map(|link| link.from.max(link.to));
        let mut groups = Groups::new(ends.max()? + 1);
        for link in network.links.iter().filter(|link| lookahead_of(link) < lookahead) {
            groups.join(link.from, link.to);
        }
        let mut work = vec![0.0; groups.0.len()];
        for (flow, &paced) in network.flows.iter().zip(paced) {
            let (source, sink) = ends_of(network, &flow.path);
            // The endpoints of a paced flow are in one partition, with all links between them: its
            // sender's lookahead reads these.
            if paced {
                for &link in flow.path.iter().chain(&*flow.back) {
                    groups.join(network.links[link].from, network.links[link].to);
                }
            }
            work[source] += SOURCE_WORK;
            work[sink] += SINK_WORK;
        }
        let mut weights = vec![0.0; work.len()];
        for (node, work) in work.into_iter().enumerate() {
            weights[groups.of(node)] += work;
        }
        let mut heaviest_first: Vec<usize> = (0..weights.len()).collect();
        heaviest_first.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
        let (mut sums, mut of_group) = ([0.0; 2], vec![0; weights.len()]);
        for group in heaviest_first {
            let lighter = usize::from(sums[1] < sums[0]);
            of_group[group] = lighter;
            sums[lighter] += weights[group];
        }
        let partition = (0..weights.len()).map(|node| of_group[groups.of(node)]).collect();
        let enough = sums[0].min(sums[1]) >= MIN_SHARE * (sums[0] + sums[1]) && sums[0] > 0.0;
        enough.then_some(Partitioning { partition, lookahead })
    }

    /// Whether every route crosses the border at most once: the contents of acknowledgements move
    /// to the other partition with them.
    fn is_crossed_once(&self, network: &Network) -> bool {
        let crosses =
            |&&link: &&usize| self.link_start(network, link) != self.link_end(network, link);
        let mut paths = network.flows.iter().flat_map(|flow| [&flow.path, &flow.back]);
        paths.all(|path| path.iter().filter(crosses).count() <= 1)
    }

    /// The most packets of 1000 bytes that a path between the partitions carries in the lookahead.
    fn packets_in_lookahead(&self, network: &Network) -> f64 {
        let crossing = network.flows.iter().map(|flow| &flow.path).filter(|path| {
            let [source, sink] = self.ends(network, path);
            source != sink
        });
        let slowest = |path: &Arc<[usize]>| {
            let rates = path.iter().filter_map(|&link| network.links[link].rate);
            rates.fold(f64::INFINITY, f64::min)
        };
        let busiest = crossing.map(slowest).filter(|rate| rate.is_finite()).fold(0.0, f64::max);
        busiest * self.lookahead.as_secs() / 8000.0
    }

    /// The partition in which a link begins: it has its queue and its transmitter.
    pub(crate) fn link_start(&self, network: &Network, link: usize) -> usize {
        self.partition[network.links[link].from]
    }

    /// The partition in which a link ends: it has its packets in flight.
    pub(crate) fn link_end(&self, network: &Network, link: usize) -> usize {
        self.partition[network.links[link].to]
    }

    /// The partitions in which a path begins and ends.
    pub(crate) fn ends(&self, network: &Network, path: &[usize]) -> [usize; 2] {
        let (source, sink) = ends_of(network, path);
        [self.partition[source], self.partition[sink]]
    }
}

/// The time by which the partition at the far end of a link lags behind: zero for a link that
/// reorders, which is within a partition.
fn lookahead_of(link: &Link) -> Dur {
    if link.reorders() { Dur::ZERO } else { link.least_delay() }
}

fn ends_of(network: &Network, path: &[usize]) -> (usize, usize) {
    let (first, last) = (path[0], path[path.len() - 1]);
    (network.links[first].from, network.links[last].to)
}

/// Whether a flow's controller is paced. `known` caches the answers.
fn is_paced<'a>(traffic: &'a Traffic, known: &mut HashMap<&'a str, bool>) -> bool {
    let tcp = match traffic {
        Traffic::Tcp(tcp) => tcp,
        Traffic::Udt(_) => return true,
        Traffic::Cbr { .. } | Traffic::Pareto { .. } => return false,
    };
    *known.entry(&tcp.controller).or_insert_with(|| {
        let spec = simulated(&tcp.controller);
        spec.is_ok_and(|spec| spec.controller(&Settings::default()).needs().reports)
    })
}

/// Disjoint sets of nodes: each node points to another one of its set, the representative to
/// itself.
struct Groups(Vec<usize>);

impl Groups {
    fn new(nodes: usize) -> Self {
        Groups((0..nodes).collect())
    }

    fn of(&mut self, mut node: usize) -> usize {
        while self.0[node] != node {
            self.0[node] = self.0[self.0[node]];
            node = self.0[node];
        }
        node
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.of(one), self.of(other));
        self.0[one] = other;
    }
}
