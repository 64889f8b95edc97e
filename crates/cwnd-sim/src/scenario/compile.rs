//! Compiles a scenario into a network. [`ValidScenario::new`] checks everything, at the cost of the
//! groups of flows; [`ValidScenario::network`] makes the flows.

use std::sync::Arc;

use cwnd::{Dur, Time};

use super::arrivals::Process;
use super::error::{Problem, problem};
use super::format::{Access, MAX_FLOWS, Scenario};
use super::groups::{Group, Names, check_names, groups};
use super::queue;
use super::routes::Routes;
use super::topology::{Topology, check_name};
use crate::cast::to_index;
use crate::check::{InvalidField, shown};
use crate::discipline::LinkUse;
use crate::network::{self, Flow, Network, Traffic};
use crate::rng::Rng;
use crate::units::{BitRate, MAX_DURATION, Span, SpanRange};

/// The largest number of links on the paths of all flows together. They take half a gigabyte.
const MAX_HOPS: u64 = 50_000_000;

/// The largest integer of TOML: a scenario that is read from JSON can be written as a file.
const MAX_SEED: u64 = i64::MAX.cast_unsigned();

/// The random draws of a flow, each as a fraction of its range. All four are drawn for every flow,
/// so that a new range does not change the other draws.
struct Draws {
    start: f64,
    source: f64,
    sink: f64,
    rtt: f64,
}

impl Draws {
    fn new(seed: u64, flow: usize) -> Self {
        let mut rng = Rng::new(seed, "placement", flow as u64);
        let mut next = || rng.uniform();
        Draws { start: next(), source: next(), sink: next(), rtt: next() }
    }
}

/// The access links of a group: its own keys over those of `[access]`.
struct Hosts {
    rate: Option<f64>,
    delay: SpanRange,
    queue: network::Queue,
}

/// A pair of nodes that flows connect, with the routes between them.
struct Ends {
    from: usize,
    to: usize,
    path: Arc<[usize]>,
    back: Arc<[usize]>,
    /// Propagation delay of both routes in nanoseconds, without access links.
    rtt: u64,
}

/// A group of flows on the network, at least one.
struct Placement<'a> {
    group: Group<'a>,
    /// The number of its first flow.
    first: usize,
    /// The number of its flows.
    size: u64,
    hosts: Option<Hosts>,
    /// The pairs of nodes, with their routes.
    pairs: Vec<Ends>,
    /// The number of flows of each pair.
    each: u64,
}

/// A valid scenario, ready to be made into a network.
pub(super) struct ValidScenario<'a> {
    scenario: &'a Scenario,
    seed: u64,
    topology: Topology<'a>,
    placements: Vec<Placement<'a>>,
}

impl<'a> ValidScenario<'a> {
    /// Checks a scenario. Sizes of queues depend on the delays that `seed` draws.
    pub(super) fn new(scenario: &'a Scenario, seed: u64) -> Result<Self, Problem> {
        let [duration, warmup, sample] =
            [scenario.duration, scenario.warmup, scenario.sample].map(Span::dur);
        network::check_times(duration, warmup, sample)
            .map_err(|InvalidField { field, message }| Problem::new(field, message))?;
        if scenario.seed > MAX_SEED {
            return problem("seed", format!("{} is above 2^63 - 1", scenario.seed));
        }
        if !scenario.name.is_empty() {
            check_name("name", &scenario.name)?;
        }
        let topology = Topology::new(scenario)?;
        let mut groups = groups(scenario)?;
        let multipath = scenario.ecmp.unwrap_or(scenario.leaf_spine.is_some()).then_some(seed);
        let mut routes = Routes::new(topology.nodes.len(), &topology.links, multipath);
        for (number, group) in groups.iter_mut().enumerate() {
            draw_arrivals(group, number, scenario, seed, &topology, &mut routes)?;
        }
        let sizes = sizes(&groups, &topology)?;
        check_names(&groups, &sizes)?;

        let mut placements = Vec::with_capacity(groups.len());
        let (mut first, mut hops) = (0, 0u64);
        for (group, size) in groups.into_iter().zip(sizes) {
            check_starts(&group, size)?;
            let hosts = hosts(&group, scenario.access.as_ref())?;
            let (pairs, each) = all_ends(&group, first, size, &topology, &mut routes)?;
            let crossed: usize = pairs.iter().map(|ends| ends.path.len() + ends.back.len()).sum();
            hops = hops.saturating_add((crossed as u64).saturating_mul(each));
            if hops > MAX_HOPS {
                return problem(
                    group.key,
                    format!("the flows so far cross {hops} links in all; at most {MAX_HOPS}"),
                );
            }
            if size > 0 {
                placements.push(Placement { group, first, size, hosts, pairs, each });
                first += to_index(size);
            }
        }
        let mut valid = ValidScenario { scenario, seed, topology, placements };
        valid.size_queues()?;
        Ok(valid)
    }

    /// Sizes the queues of the network's own links for the flows that cross them.
    fn size_queues(&mut self) -> Result<(), Problem> {
        let links = &mut self.topology.links;
        // Of each link whether flows with feedback cross it; and of these, or else of the other
        // sources, the longest round-trip time and the largest packet.
        let mut across = vec![(false, 0u64, 0u32); links.len()];
        for placement in &self.placements {
            let traffic = &placement.group.traffic;
            let closed_loop = !matches!(**traffic, Traffic::Cbr { .. } | Traffic::Pareto { .. });
            let packet = wire_size(traffic);
            for (pair, ends) in placement.pairs.iter().enumerate() {
                let rtt = placement.longest_rtt(pair, self.seed);
                for &link in ends.path.iter().chain(&*ends.back) {
                    let (seen, longest, largest) = &mut across[link];
                    if closed_loop && !*seen {
                        (*seen, *longest, *largest) = (true, rtt, packet);
                    } else if closed_loop == *seen {
                        *longest = (*longest).max(rtt);
                        *largest = (*largest).max(packet);
                    }
                }
            }
        }
        for ((link, unsized_queue), (_, longest, largest)) in
            links.iter_mut().zip(&self.topology.queues).zip(across)
        {
            let Some(unsized_queue) = unsized_queue else { continue };
            let rtt = unsized_queue.bdp_rtt.map_or(longest, Span::nanos) as f64 / 1e9;
            let link_use = LinkUse {
                rate: link.rate,
                rtt: Some(rtt),
                packet: if largest == 0 { 1500 } else { largest },
            };
            link.queue = queue::compile(unsized_queue.queue, &unsized_queue.key, &link_use)?;
        }
        Ok(())
    }

    /// Makes the network.
    pub(super) fn network(self) -> Network {
        let ValidScenario { scenario, seed, mut topology, placements } = self;
        let mut flows = Vec::with_capacity(placements.iter().map(|each| to_index(each.size)).sum());
        let mut names = Names::new(placements.iter().map(|each| (&each.group, each.size)));
        for placement in &placements {
            let pairs = placement.pairs.iter();
            let ends = pairs.flat_map(|ends| (0..placement.each).map(move |_| ends));
            let names = names.next_group(&placement.group, placement.size);
            for ((at, ends), name) in (0..).zip(ends).zip(names) {
                let draws = Draws::new(seed, flows.len());
                flows.push(placement.flow(name, at, ends, &draws, &mut topology));
            }
        }
        let name = if scenario.name.is_empty() { "scenario" } else { &scenario.name };
        Network {
            name: name.to_owned(),
            nodes: topology.nodes,
            links: topology.links,
            flows,
            duration: scenario.duration.dur(),
            warmup: scenario.warmup.dur(),
            sample: scenario.sample.dur(),
        }
    }
}

impl Placement<'_> {
    /// Returns the propagation delays of the access links of source and sink.
    fn access_delays(&self, hosts: &Hosts, ends: &Ends, draws: &Draws) -> [Dur; 2] {
        match self.group.rtt {
            // A packet and its acknowledgement cross the access links four times in all.
            Some(rtt) => {
                let quarter = rtt.at(draws.rtt).as_nanos().saturating_sub(ends.rtt) / 4;
                [Dur::from_nanos(quarter); 2]
            }
            None => [hosts.delay.at(draws.source), hosts.delay.at(draws.sink)],
        }
    }

    /// Returns the longest propagation round trip of the flows between pair number `pair`, in
    /// nanoseconds.
    fn longest_rtt(&self, pair: usize, seed: u64) -> u64 {
        let ends = &self.pairs[pair];
        let Some(hosts) = &self.hosts else { return ends.rtt };
        let range = self.group.rtt.unwrap_or(hosts.delay);
        let each = to_index(self.each);
        let drawn = if range.low() == range.high() { 1 } else { each };
        let first = self.first + pair * each;
        let access = (first..first + drawn).map(|flow| {
            let [source, sink] = self.access_delays(hosts, ends, &Draws::new(seed, flow));
            2 * (source.as_nanos() + sink.as_nanos())
        });
        ends.rtt + access.max().unwrap_or(0)
    }

    /// Makes flow number `at` of the group, and its hosts.
    fn flow(
        &self,
        name: String,
        at: u64,
        ends: &Ends,
        draws: &Draws,
        topology: &mut Topology,
    ) -> Flow {
        let group = &self.group;
        let (path, back) = match &self.hosts {
            None => (ends.path.clone(), ends.back.clone()),
            Some(hosts) => {
                let [source, sink] = self.access_delays(hosts, ends, draws);
                let [up, down] =
                    add_host(topology, &format!("{name}.source"), ends.from, hosts, source);
                let [sink_up, sink_down] =
                    add_host(topology, &format!("{name}.sink"), ends.to, hosts, sink);
                (
                    [&[up], &*ends.path, &[sink_down]].concat().into(),
                    [&[sink_up], &*ends.back, &[down]].concat().into(),
                )
            }
        };
        let stagger = group.stagger.nanos().saturating_mul(at);
        let arrival = group.drawn.get(to_index(at));
        let start = arrival.map_or(group.start.at(draws.start).as_nanos() + stagger, |it| it.at);
        // Transfers that have arrived before the stop time are completed.
        let stop = group.stop.filter(|_| arrival.is_none());
        Flow {
            name,
            path,
            back,
            start: Time::from_nanos(start),
            stop: stop.map_or(Time::NEVER, |stop| Time::from_nanos(stop.nanos())),
            traffic: group.traffic.clone(),
            measured: group.measured,
            bytes: arrival.map(|arrival| arrival.bytes),
            application: group.application.clone(),
        }
    }
}

/// Adds a host with its two links and returns their indices: to the router and from it.
fn add_host(
    topology: &mut Topology,
    name: &str,
    router: usize,
    hosts: &Hosts,
    delay: Dur,
) -> [usize; 2] {
    // The names of other nodes have no dot: no node has this name.
    let host = topology.nodes.len();
    topology.nodes.push(name.to_owned());
    let up = topology.links.len();
    let names = [
        format!("{name}-{}", topology.nodes[router]),
        format!("{}-{name}", topology.nodes[router]),
    ];
    for (link, ends) in names.into_iter().zip([[host, router], [router, host]]) {
        topology.links.push(network::Link::new(link, ends, hosts.rate, delay, hosts.queue));
    }
    [up, up + 1]
}

/// Draws the arrivals of a group that has some, and sets its number of flows.
fn draw_arrivals(
    group: &mut Group,
    number: usize,
    scenario: &Scenario,
    seed: u64,
    topology: &Topology,
    routes: &mut Routes,
) -> Result<(), Problem> {
    let Some(arrivals) = group.arrivals.filter(|_| group.count > 0) else { return Ok(()) };
    let key = group.at("arrivals");
    let access = hosts(group, scenario.access.as_ref())?.and_then(|hosts| hosts.rate);
    let mut links = Vec::new();
    for (from, to) in all_nodes(group, topology)? {
        let found = routes.links(from, to);
        let found = found.ok_or_else(|| no_path(group, topology, from, to))?;
        links.extend(found.iter().map(|&link| &topology.links[link]));
    }
    let process = Process::new(arrivals, &key, &group.traffic, &links, access)?;
    let end = group.stop.unwrap_or(scenario.duration).min(scenario.duration);
    group.drawn = process.draw(&key, seed, number, group.start.low().dur(), end.dur())?;
    group.count = group.drawn.len() as u64;
    Ok(())
}

/// Returns the number of flows of each group.
fn sizes(groups: &[Group], topology: &Topology) -> Result<Vec<u64>, Problem> {
    let hops = topology.routers.len().saturating_sub(1) as u64;
    let mut total = 0u64;
    let mut sizes = Vec::with_capacity(groups.len());
    for group in groups {
        if group.cross && hops == 0 {
            return problem(group.at("cross"), "cross traffic needs a [chain]");
        }
        let size = group.count.saturating_mul(if group.cross { hops } else { 1 });
        total = total.saturating_add(size);
        if total > MAX_FLOWS {
            return problem(
                group.at("count"),
                format!("{total} flows so far; at most {MAX_FLOWS}"),
            );
        }
        sizes.push(size);
    }
    // Arrivals are drawn: a seed may have none.
    if total == 0 && groups.iter().all(|group| group.arrivals.is_none()) {
        return problem("", "no traffic: write at least one [[flow]], [[cbr]] or [[pareto]]");
    }
    Ok(sizes)
}

/// Checks that the flows of a group start in time and before they stop.
fn check_starts(group: &Group, size: u64) -> Result<(), Problem> {
    let stagger = group.stagger.nanos().saturating_mul(size.saturating_sub(1));
    let latest = group.start.high().nanos().saturating_add(stagger);
    if latest > MAX_DURATION.nanos() {
        return problem(
            group.at("stagger"),
            format!("the last of {size} flows would start after {MAX_DURATION}"),
        );
    }
    match group.stop {
        Some(stop) if stop.nanos() <= latest => problem(
            group.at("stop"),
            format!("stops at {stop}, but starts as late as {}", shown(Dur::from_nanos(latest))),
        ),
        _ => Ok(()),
    }
}

/// Returns the access links of a group; `None` if its flows start and end at the routers.
fn hosts(group: &Group, common: Option<&Access>) -> Result<Option<Hosts>, Problem> {
    if group.access.is_none() && common.is_none() && group.rtt.is_none() {
        return Ok(None);
    }
    let none = Access::default();
    let (own, common) = (group.access.unwrap_or(&none), common.unwrap_or(&none));
    let rate = own.rate.or(common.rate).unwrap_or(BitRate::INFINITE).finite();
    let (queue, key) = match &own.queue {
        Some(queue) => (Some(queue), group.at("access.queue")),
        None => (common.queue.as_ref(), "access.queue".to_owned()),
    };
    // By default the queue is infinite: the access link is not the bottleneck.
    let queue = match queue {
        Some(queue) => {
            let link_use = LinkUse { rate, rtt: None, packet: wire_size(&group.traffic) };
            queue::compile(Some(queue), &key, &link_use)?
        }
        None => network::Queue::INFINITE,
    };
    Ok(Some(Hosts { rate, delay: own.delay.or(common.delay).unwrap_or_default(), queue }))
}

/// Returns the size of a data packet on the wire in bytes.
fn wire_size(traffic: &Traffic) -> u32 {
    if let Traffic::Tcp(tcp) = traffic {
        return tcp.largest_packet();
    }
    let (payload, header) = traffic.packet_bytes();
    payload + header
}

/// Returns the pairs of nodes that a group's flows connect.
fn all_nodes(group: &Group, topology: &Topology) -> Result<Vec<(usize, usize)>, Problem> {
    let ordered = |(from, to)| if group.reverse { (to, from) } else { (from, to) };
    if group.cross {
        for (name, given) in [("from", group.from), ("to", group.to)] {
            if given.is_some() {
                return problem(group.at(name), "cross traffic runs from each router to the next");
            }
        }
        let hops = topology.routers.windows(2).filter_map(|hop| hop.first().zip(hop.last()));
        return Ok(hops.map(|(&from, &to)| ordered((from, to))).collect());
    }
    let end = |name: &str, given: Option<&str>, default: Option<usize>| match (given, default) {
        (Some(nodes), _) => topology.known_range(&group.at(name), nodes),
        (None, Some(node)) => Ok(vec![node]),
        (None, None) => {
            problem(group.at(name), format!("missing `{name}`: this network has no default nodes"))
        }
    };
    let from = end("from", group.from, topology.ends.map(|ends| ends.0))?;
    let to = end("to", group.to, topology.ends.map(|ends| ends.1))?;
    if from.len() > 1 && to.len() > 1 && from.len() != to.len() {
        let message = format!("{} nodes, and `from` has {}", to.len(), from.len());
        return problem(group.at("to"), message);
    }
    let pairs = from.len().max(to.len());
    let pairs = from.iter().cycle().zip(to.iter().cycle()).take(pairs);
    let pairs: Vec<_> = pairs.map(|(&from, &to)| ordered((from, to))).collect();
    if let Some((same, _)) = pairs.iter().find(|(from, to)| from == to) {
        let name = &topology.nodes[*same];
        let message = format!("starts and ends at the same node \"{name}\"");
        return problem(group.at("to"), message);
    }
    Ok(pairs)
}

/// Returns the pairs of nodes of a group of `size` flows with their routes, and the number of flows
/// of each. The flows of a pair have the same routes; `first` is the number of the group's first
/// flow.
fn all_ends(
    group: &Group,
    first: usize,
    size: u64,
    topology: &Topology,
    routes: &mut Routes,
) -> Result<(Vec<Ends>, u64), Problem> {
    let nodes = all_nodes(group, topology)?;
    // Flows take the nodes of a range in turn.
    let dealt = !group.cross && nodes.len() > 1;
    let each = if routes.are_single() && !dealt { group.count } else { 1 };
    let mut pairs = Vec::new();
    for at in 0..(size / each.max(1)).max(1) {
        let number = if group.cross { at * each / group.count.max(1) } else { at };
        let Some(&(from, to)) = nodes.get(to_index(number) % nodes.len().max(1)) else { break };
        pairs.push(ends(group, from, to, first + to_index(at * each), topology, routes)?);
    }
    Ok((pairs, each))
}

fn no_path(group: &Group, topology: &Topology, from: usize, to: usize) -> Problem {
    let name = |node: usize| topology.nodes[node].as_str();
    let message = format!("there is no path from \"{}\" to \"{}\"", name(from), name(to));
    Problem::new(group.key.clone(), message)
}

/// Returns two nodes with the routes of flow number `flow`.
fn ends(
    group: &Group,
    from: usize,
    to: usize,
    flow: usize,
    topology: &Topology,
    routes: &mut Routes,
) -> Result<Ends, Problem> {
    let name = |node: usize| topology.nodes[node].as_str();
    let [path, back] = routes.find(from, to, flow);
    let path = path.ok_or_else(|| no_path(group, topology, from, to))?;
    let back = back.ok_or_else(|| no_path(group, topology, to, from))?;
    let delay = |links: &[usize]| -> u64 {
        links.iter().map(|link| topology.links[*link].delay.as_nanos()).sum()
    };
    let rtt = delay(&path) + delay(&back);
    if let Some(wanted) = group.rtt
        && wanted.low().nanos() < rtt
    {
        return problem(
            group.at("rtt"),
            format!(
                "{} is less than the {} from \"{}\" to \"{}\" and back without access links",
                wanted.low(),
                shown(Dur::from_nanos(rtt)),
                name(from),
                name(to)
            ),
        );
    }
    Ok(Ends { from, to, path, back, rtt })
}
