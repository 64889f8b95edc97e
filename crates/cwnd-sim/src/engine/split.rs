//! Where a network can be cut in two halves that run side by side: at links so long that what one
//! half does reaches the other only later.

use crate::network::{Network, Traffic};
use cwnd::{Controller, Dur, MakeController, Settings, Spec};
use std::collections::HashMap;

/// A half must do at least this part of the work.
const LIGHTEST: f64 = 0.2;
/// Packets of a thousand bytes that a path between the halves carries at least while it crosses:
/// fewer are not worth the waiting for each other.
const BUSIEST: f64 = 100.0;
/// From so many on it is worth it that one half has the queues of the other's packets, and follows
/// closer behind.
const CROWDED: f64 = 5000.0;
/// No cut is worth it at links shorter than this.
const SHORTEST: Dur = Dur::from_nanos(1000);
/// A sender does more than its receiver.
const SOURCE: f64 = 2.0;
const SINK: f64 = 1.0;
/// A half with so many times the other's senders has most of the work.
const CROWD: usize = 2;

/// Two halves of a network.
pub(crate) struct Split {
    /// For each node its half, 0 or 1.
    half: Vec<usize>,
    /// For each link the half that has its queue and transmitter.
    links: Vec<usize>,
    /// What leaves each half takes at least this long to the other; nothing where that has the queues.
    pub lookahead: [Dur; 2],
}

impl Split {
    /// The cut through the longest links that gives both halves enough to do.
    pub(crate) fn find(network: &Network) -> Option<Self> {
        let delays = network.links.iter().map(|link| link.delay);
        let mut delays: Vec<Dur> = delays.filter(|&delay| delay >= SHORTEST).collect();
        delays.sort_unstable();
        delays.dedup();
        let mut known = HashMap::new();
        let flows = network.flows.iter();
        let paced: Vec<_> = flows.map(|flow| is_paced(&flow.traffic, &mut known)).collect();
        // The shorter the links that may be cut, the smaller the pieces: where a cut gives both halves
        // enough to do, those at shorter links do as well.
        let cut = |&delay: &Dur| Self::at(network, &paced, delay);
        let longest = delays.partition_point(|delay| cut(delay).is_some()).checked_sub(1)?;
        let mut split = cut(&delays[longest])?;
        let carried = split.carries(network);
        if carried < BUSIEST {
            return None;
        }
        if carried >= CROWDED {
            split.relieve(network);
        }
        Some(split)
    }

    /// The halves of a network all of whose links from `lookahead` on are cut; `paced` tells of each
    /// flow whether its controller is.
    fn at(network: &Network, paced: &[bool], lookahead: Dur) -> Option<Self> {
        let ends = network.links.iter().map(|link| link.from.max(link.to));
        let mut groups = Groups::new(ends.max()? + 1);
        for link in network.links.iter().filter(|link| link.delay < lookahead) {
            groups.join(link.from, link.to);
        }
        let mut work = vec![0.0; groups.0.len()];
        for (flow, &paced) in network.flows.iter().zip(paced) {
            let (source, sink) = ends_of(network, &flow.path);
            // The two endpoints of a paced controller look at each other, and at what is on their way;
            // those of UDT are in one place.
            if paced {
                for &link in flow.path.iter().chain(&flow.back) {
                    groups.join(network.links[link].from, network.links[link].to);
                }
            }
            work[source] += SOURCE;
            work[sink] += SINK;
        }
        let mut weights = vec![0.0; work.len()];
        for (node, work) in work.into_iter().enumerate() {
            weights[groups.of(node)] += work;
        }
        let mut heaviest_first: Vec<usize> = (0..weights.len()).collect();
        heaviest_first.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
        let (mut sums, mut half_of_group) = ([0.0; 2], vec![0; weights.len()]);
        for group in heaviest_first {
            let lighter = usize::from(sums[1] < sums[0]);
            half_of_group[group] = lighter;
            sums[lighter] += weights[group];
        }
        let half: Vec<_> = (0..weights.len()).map(|node| half_of_group[groups.of(node)]).collect();
        let links = network.links.iter().map(|link| half[link.from]).collect();
        (sums[0].min(sums[1]) >= LIGHTEST * (sums[0] + sums[1]) && sums[0] > 0.0).then_some(Split {
            half,
            links,
            lookahead: [lookahead; 2],
        })
    }

    /// Gives the queues at the cut to the other half where one has most of the senders: they then take
    /// what arrives in the order in which that half saw it.
    fn relieve(&mut self, network: &Network) {
        let mut senders = [0; 2];
        let mut begins = vec![false; network.links.len()];
        for flow in &network.flows {
            senders[self.of_path(network, &flow.path)[0]] += 1;
            begins[flow.path[0]] = true;
            begins[flow.back[0]] = true;
        }
        let heavier = usize::from(senders[1] > senders[0]);
        if senders[heavier] < CROWD * senders[1 - heavier] {
            return;
        }
        for (link, ends) in network.links.iter().enumerate() {
            let [from, to] = [self.half[ends.from], self.half[ends.to]];
            if from == heavier && to != heavier && !begins[link] {
                self.links[link] = to;
                self.lookahead[heavier] = Dur::ZERO;
            }
        }
    }

    /// Packets of a thousand bytes that a path between the halves carries at most while it crosses.
    fn carries(&self, network: &Network) -> f64 {
        let crossing = network.flows.iter().map(|flow| &flow.path).filter(|path| {
            let [source, sink] = self.of_path(network, path);
            source != sink
        });
        let slowest = |path: &Vec<usize>| {
            let rates = path.iter().filter_map(|&link| network.links[link].rate);
            rates.fold(f64::INFINITY, f64::min)
        };
        let busiest = crossing.map(slowest).filter(|rate| rate.is_finite()).fold(0.0, f64::max);
        busiest * self.lookahead[0].as_secs() / 8000.0
    }

    /// The half in which link number `link` has its queue and transmitter.
    pub(crate) fn of_link(&self, link: usize) -> usize {
        self.links[link]
    }

    /// The half in which link number `link` ends.
    pub(crate) fn beyond_link(&self, network: &Network, link: usize) -> usize {
        self.half[network.links[link].to]
    }

    /// The half in which the packets of link number `link` come to it.
    pub(crate) fn before_link(&self, network: &Network, link: usize) -> usize {
        self.half[network.links[link].from]
    }

    /// The halves in which a path begins and ends.
    pub(crate) fn of_path(&self, network: &Network, path: &[usize]) -> [usize; 2] {
        let (source, sink) = ends_of(network, path);
        [self.half[source], self.half[sink]]
    }
}

fn ends_of(network: &Network, path: &[usize]) -> (usize, usize) {
    let (first, last) = (path[0], path[path.len() - 1]);
    (network.links[first].from, network.links[last].to)
}

/// Whether a flow's controller is paced; `known` keeps what was found out.
fn is_paced<'a>(traffic: &'a Traffic, known: &mut HashMap<&'a str, bool>) -> bool {
    let tcp = match traffic {
        Traffic::Tcp(tcp) => tcp,
        Traffic::Udt(_) => return true,
        Traffic::Cbr { .. } | Traffic::Pareto { .. } => return false,
    };
    *known.entry(&tcp.controller).or_insert_with(|| {
        let spec = Spec::parse(&tcp.controller);
        spec.is_ok_and(|spec| spec.controller(&Settings::default()).needs().reports)
    })
}

/// Nodes joined into groups: each points to another of its group, the last to itself.
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
