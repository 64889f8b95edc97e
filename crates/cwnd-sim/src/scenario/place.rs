//! Puts the traffic on the network: names, hosts, routes, starting times.

use std::collections::HashSet;
use std::rc::Rc;

use cwnd::{Dur, Time};

use super::error::{Problem, problem};
use super::format::{Access, Queue, QueueKind, Scenario};
use super::groups::{Group, Names, groups};
use super::queue::{self, Surroundings};
use super::routes::Routes;
use super::topology::{Topology, check_name};
use super::units::{BitRate, LONGEST, QueueSize, Span, SpanRange};
use crate::network::{self, Flow, InvalidField, Network, Traffic};
use crate::rng::Rng;

/// Flows of one scenario, at most.
pub const MOST_FLOWS: u64 = 1_000_000;
/// Links on the paths of all flows together, at most: a memory of half a gigabyte.
const MOST_HOPS: u64 = 50_000_000;

/// What the placement of one flow draws, each as a share of its range. All four are drawn whether
/// used or not, so that giving one a range does not move the others.
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

/// A group's access links: its own keys over those of `[access]`.
struct Hosts {
    rate: Option<f64>,
    delay: SpanRange,
    queue: network::Queue,
}

/// One of a group's pairs of ends, with the ways between them.
struct Ends {
    from: usize,
    to: usize,
    path: Rc<[usize]>,
    back: Rc<[usize]>,
    /// Propagation there and back, without access links.
    rtt: u64,
}

/// The network to run.
pub(super) fn network(scenario: &Scenario, seed: u64) -> Result<Network, Problem> {
    let [duration, warmup, sample] =
        [scenario.duration, scenario.warmup, scenario.sample].map(Span::dur);
    network::check_times(duration, warmup, sample)
        .map_err(|InvalidField { field, message }| Problem::new(field, message))?;
    if !scenario.name.is_empty() {
        check_name("name", &scenario.name)?;
    }
    let mut topology = Topology::new(scenario)?;
    let groups = groups(scenario)?;
    let sizes = sizes(&groups, &topology)?;

    let mut flows = Vec::new();
    let mut hops = 0u64;
    let mut routes = Routes::new(topology.nodes.len(), &topology.links);
    let mut names = Names::new(&groups, &sizes);
    let mut taken = HashSet::new();
    for (group, &size) in groups.iter().zip(&sizes) {
        check_times(group, size)?;
        let hosts = hosts(group, scenario.access.as_ref())?;
        let mut at = 0;
        for ends in all_ends(group, &topology, &mut routes)? {
            let crossed = (ends.path.len() + ends.back.len()) as u64;
            hops = hops.saturating_add(crossed.saturating_mul(group.count));
            if hops > MOST_HOPS {
                return problem(
                    group.key.as_str(),
                    format!("the flows so far cross {hops} links in all; at most {MOST_HOPS}"),
                );
            }
            for _ in 0..group.count {
                let name = names.next(group, at, size);
                if !taken.insert(name.clone()) {
                    let key = if group.name.is_some() { ".name" } else { "" };
                    return problem(
                        format!("{}{key}", group.key),
                        format!("a second flow \"{name}\": give each group a name of its own"),
                    );
                }
                let draws = Draws::new(seed, flows.len());
                flows.push(place(group, name, at, &ends, hosts.as_ref(), &draws, &mut topology));
                at += 1;
            }
        }
    }
    size_queues(&mut topology, &flows)?;

    let name = if scenario.name.is_empty() { "scenario" } else { &scenario.name };
    Ok(Network {
        name: name.to_owned(),
        nodes: topology.nodes,
        links: topology.links,
        flows,
        duration,
        warmup,
        sample,
    })
}

/// The number of flows of each group, if all together are few enough.
fn sizes(groups: &[Group], topology: &Topology) -> Result<Vec<u64>, Problem> {
    let hops = topology.routers.len().saturating_sub(1) as u64;
    let mut total = 0u64;
    let mut sizes = Vec::with_capacity(groups.len());
    for group in groups {
        if group.cross && hops == 0 {
            return problem(format!("{}.cross", group.key), "cross traffic needs a [chain]");
        }
        let size = group.count.saturating_mul(if group.cross { hops } else { 1 });
        total = total.saturating_add(size);
        if total > MOST_FLOWS {
            return problem(
                format!("{}.count", group.key),
                format!("{total} flows so far; at most {MOST_FLOWS}"),
            );
        }
        sizes.push(size);
    }
    if total == 0 {
        return problem("", "no traffic: write at least one [[flow]], [[cbr]] or [[pareto]]");
    }
    Ok(sizes)
}

fn check_times(group: &Group, size: u64) -> Result<(), Problem> {
    let stagger = group.stagger.nanos().saturating_mul(size.saturating_sub(1));
    let latest = group.start.high().nanos().saturating_add(stagger);
    if latest > LONGEST.nanos() {
        return problem(
            format!("{}.stagger", group.key),
            format!("the last of {size} flows would start after {LONGEST}"),
        );
    }
    match group.stop {
        Some(stop) if stop.nanos() <= latest => problem(
            format!("{}.stop", group.key),
            format!("stops at {stop}, but starts as late as {}", Span::shown(latest)),
        ),
        _ => Ok(()),
    }
}

/// The access links of a group, unless its flows live on the routers themselves.
fn hosts(group: &Group, common: Option<&Access>) -> Result<Option<Hosts>, Problem> {
    if group.access.is_none() && common.is_none() && group.rtt.is_none() {
        return Ok(None);
    }
    let none = Access::default();
    let (own, common) = (group.access.unwrap_or(&none), common.unwrap_or(&none));
    let rate = own.rate.or(common.rate).unwrap_or(BitRate::INFINITE).finite();
    let (queue, key) = match &own.queue {
        Some(queue) => (Some(queue), format!("{}.access.queue", group.key)),
        None => (common.queue.as_ref(), "access.queue".to_owned()),
    };
    // Never the bottleneck, unless the scenario says how.
    let queue = match queue {
        Some(queue) => access_queue(queue, &key, rate, group)?,
        None => network::Queue::DropTail { limit: network::QueueLimit::Packets(u32::MAX) },
    };
    Ok(Some(Hosts { rate, delay: own.delay.or(common.delay).unwrap_or_default(), queue }))
}

fn access_queue(
    queue: &Queue,
    key: &str,
    rate: Option<f64>,
    group: &Group,
) -> Result<network::Queue, Problem> {
    // The hosts of one group differ in their delays, and so would the queues.
    if matches!(queue.0.limit, Some(QueueSize::Bdp(_))) {
        return problem(
            key,
            "an access queue's limit is in packets (`50p`) or bytes, not in `bdp`",
        );
    }
    if queue.0.limit.is_none() {
        return match queue.0.kind {
            QueueKind::DropTail => {
                Ok(network::Queue::DropTail { limit: network::QueueLimit::Packets(u32::MAX) })
            }
            QueueKind::Red => problem(key, "a red access queue needs its limit in packets"),
        };
    }
    let around = Surroundings { rate, rtt: 0.0, packet: wire(&group.traffic) };
    queue::compile(Some(queue), key, &around)
}

/// Bytes of a data packet on the wire.
fn wire(traffic: &Traffic) -> u32 {
    match traffic {
        Traffic::Tcp(tcp) => tcp.packet + tcp.header,
        Traffic::Udt(udt) => udt.packet + udt.header,
        Traffic::Cbr { packet, .. } | Traffic::Pareto { packet, .. } => *packet,
    }
}

/// The pairs of nodes between which a group's flows run.
fn all_ends(group: &Group, topology: &Topology, routes: &mut Routes) -> Result<Vec<Ends>, Problem> {
    if group.cross {
        for (name, given) in [("from", group.from), ("to", group.to)] {
            if given.is_some() {
                return problem(
                    format!("{}.{name}", group.key),
                    "cross traffic runs from each router to the next",
                );
            }
        }
        let hops = topology.routers.windows(2).filter_map(|hop| hop.first().zip(hop.last()));
        return hops.map(|(&from, &to)| ends(group, from, to, topology, routes)).collect();
    }
    let end = |name: &str, given: Option<&str>, default: Option<usize>| match (given, default) {
        (Some(node), _) => topology.known(format!("{}.{name}", group.key), node),
        (None, Some(node)) => Ok(node),
        (None, None) => problem(
            format!("{}.{name}", group.key),
            format!("missing `{name}`: a network of [[link]]s has no ends of its own"),
        ),
    };
    let from = end("from", group.from, topology.ends.map(|ends| ends.0))?;
    let to = end("to", group.to, topology.ends.map(|ends| ends.1))?;
    Ok(vec![ends(group, from, to, topology, routes)?])
}

fn ends(
    group: &Group,
    from: usize,
    to: usize,
    topology: &Topology,
    routes: &mut Routes,
) -> Result<Ends, Problem> {
    let (from, to) = if group.reverse { (to, from) } else { (from, to) };
    let name = |node: usize| topology.nodes[node].as_str();
    if from == to {
        return problem(
            format!("{}.to", group.key),
            format!("starts and ends at the same node \"{}\"", name(from)),
        );
    }
    let mut way = |from, to| {
        routes.find(from, to).ok_or_else(|| {
            Problem::new(
                group.key.clone(),
                format!("there is no path from \"{}\" to \"{}\"", name(from), name(to)),
            )
        })
    };
    let (path, back) = (way(from, to)?, way(to, from)?);
    let delay = |links: &[usize]| -> u64 {
        links.iter().map(|link| topology.links[*link].delay.as_nanos()).sum()
    };
    let rtt = delay(&path) + delay(&back);
    if let Some(wanted) = group.rtt
        && wanted.low().nanos() < rtt
    {
        return problem(
            format!("{}.rtt", group.key),
            format!(
                "{} is less than the {} from \"{}\" to \"{}\" and back without access links",
                wanted.low(),
                Span::shown(rtt),
                name(from),
                name(to)
            ),
        );
    }
    Ok(Ends { from, to, path, back, rtt })
}

/// One flow with its hosts.
fn place(
    group: &Group,
    name: String,
    at: u64,
    ends: &Ends,
    hosts: Option<&Hosts>,
    draws: &Draws,
    topology: &mut Topology,
) -> Flow {
    let (mut path, mut back) = (ends.path.to_vec(), ends.back.to_vec());
    if let Some(hosts) = hosts {
        let (source, sink) = match group.rtt {
            // An equal part for each of the four times that a packet and its answer cross.
            Some(rtt) => {
                let quarter = rtt.at(draws.rtt).as_nanos().saturating_sub(ends.rtt) / 4;
                (Dur::from_nanos(quarter), Dur::from_nanos(quarter))
            }
            None => (hosts.delay.at(draws.source), hosts.delay.at(draws.sink)),
        };
        let (up, down) = host(topology, &format!("{name}.source"), ends.from, hosts, source);
        path.insert(0, up);
        back.push(down);
        let (up, down) = host(topology, &format!("{name}.sink"), ends.to, hosts, sink);
        path.push(down);
        back.insert(0, up);
    }
    let start = group.start.at(draws.start).as_nanos() + group.stagger.nanos().saturating_mul(at);
    Flow {
        name,
        path,
        back,
        start: Time::from_nanos(start),
        stop: group.stop.map_or(Time::NEVER, |stop| Time::from_nanos(stop.nanos())),
        traffic: group.traffic.clone(),
        measured: group.measured,
    }
}

/// A host and its two links: up to the router and down from it.
fn host(
    topology: &mut Topology,
    name: &str,
    router: usize,
    hosts: &Hosts,
    delay: Dur,
) -> (usize, usize) {
    // Names of nodes in a file have no dots: a host's cannot be taken.
    let host = topology.nodes.len();
    topology.nodes.push(name.to_owned());
    let up = topology.links.len();
    let names = [
        format!("{name}-{}", topology.nodes[router]),
        format!("{}-{name}", topology.nodes[router]),
    ];
    for (link, (from, to)) in names.into_iter().zip([(host, router), (router, host)]) {
        topology.links.push(network::Link {
            name: link,
            from,
            to,
            rate: hosts.rate,
            delay,
            queue: hosts.queue,
            loss: 0.0,
            loss_of_acks: false,
        });
    }
    (up, up + 1)
}

/// Gives the queues of the network's own links their sizes: they depend on who crosses them.
fn size_queues(topology: &mut Topology, flows: &[Flow]) -> Result<(), Problem> {
    let own = topology.queues.len();
    // The longest round trip and the largest packet across each link, of TCP if there is any.
    let mut across = vec![(false, 0u64, 0u32); own];
    for flow in flows {
        let crossed = || flow.path.iter().chain(&flow.back);
        let rtt: u64 = crossed().map(|link| topology.links[*link].delay.as_nanos()).sum();
        let tcp = matches!(flow.traffic, Traffic::Tcp(_) | Traffic::Udt(_));
        let packet = wire(&flow.traffic);
        for &link in crossed().filter(|link| **link < own) {
            let (seen_tcp, longest, largest) = &mut across[link];
            if tcp && !*seen_tcp {
                (*seen_tcp, *longest, *largest) = (true, rtt, packet);
            } else if tcp == *seen_tcp {
                *longest = (*longest).max(rtt);
                *largest = (*largest).max(packet);
            }
        }
    }
    for (link, (_, longest, largest)) in across.into_iter().enumerate() {
        let unsized_queue = &topology.queues[link];
        let around = Surroundings {
            rate: topology.links[link].rate,
            rtt: queue::bdp_rtt(unsized_queue.bdp_rtt, longest),
            packet: if largest == 0 { 1500 } else { largest },
        };
        topology.links[link].queue =
            queue::compile(unsized_queue.queue, &unsized_queue.key, &around)?;
    }
    Ok(())
}
