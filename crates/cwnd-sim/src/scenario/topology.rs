//! Nodes and links of a scenario, without traffic.

use std::collections::{HashMap, HashSet};

use super::error::{Problem, problem, unknown_name};
use super::format::{Back, Queue, Scenario};
use super::units::{BitRate, Probability, Span};
use crate::network::{self, QueueLimit};

/// The largest number of `[[link]]`s.
const MOST_LINKS: usize = 100_000;
/// The largest number of routers of a chain.
const MOST_ROUTERS: u32 = 10_000;
/// The largest number of characters of a name.
const LONGEST_NAME: usize = 64;

/// The network without traffic. The sizes of queues depend on the flows.
pub(super) struct Topology<'a> {
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// The index of each node by its name.
    pub index: HashMap<String, usize>,
    /// One-way links. Their queues are placeholders.
    pub links: Vec<network::Link>,
    /// The queue of each link in the file.
    pub queues: Vec<UnsizedQueue<'a>>,
    /// The default nodes of sources and sinks.
    pub ends: Option<(usize, usize)>,
    /// The routers of a chain, in order.
    pub routers: Vec<usize>,
    names: HashSet<String>,
}

/// A queue in the file, and the values that determine its size.
pub(super) struct UnsizedQueue<'a> {
    /// The queue in the file; `None` for the default.
    pub queue: Option<&'a Queue>,
    /// Its key, for errors.
    pub key: String,
    /// The round-trip time of `bdp` in the file.
    pub bdp_rtt: Option<Span>,
}

/// The keys that `[dumbbell]`, `[chain]` and `[[link]]` share.
struct LinkKeys<'a, 'k> {
    key: &'k str,
    name: Option<&'a str>,
    rate: BitRate,
    delay: Span,
    queue: Option<&'a Queue>,
    bdp_rtt: Option<Span>,
    loss: Probability,
    loss_of_acks: bool,
    duplex: bool,
    back: Option<&'a Back>,
}

/// Checks a name, which is used in records, file names and derived names such as `a-b`.
pub(super) fn check_name(key: impl Into<String>, name: &str) -> Result<(), Problem> {
    if name.is_empty() {
        problem(key, "a name cannot be empty")
    } else if name.chars().count() > LONGEST_NAME {
        problem(key, format!("a name has at most {LONGEST_NAME} letters"))
    } else if !name.chars().all(network::is_in_names) {
        let shown = super::units::shorten(name);
        problem(key, format!("\"{shown}\" is not a name: use letters, digits, - and _"))
    } else {
        Ok(())
    }
}

impl<'a> Topology<'a> {
    /// Creates the nodes and links of a scenario.
    pub(super) fn new(scenario: &'a Scenario) -> Result<Self, Problem> {
        let mut topology = Topology {
            nodes: Vec::new(),
            index: HashMap::new(),
            links: Vec::new(),
            queues: Vec::new(),
            ends: None,
            routers: Vec::new(),
            names: HashSet::new(),
        };
        match (&scenario.dumbbell, &scenario.chain, scenario.link.is_empty()) {
            (Some(_), Some(_), _) => {
                return problem("chain", "a network is a [dumbbell] or a [chain], not both");
            }
            (None, None, true) => {
                return problem("", "no network: write a [dumbbell], a [chain] or [[link]]s");
            }
            _ => {}
        }
        topology.dumbbell(scenario)?;
        topology.chain(scenario)?;
        if scenario.link.len() > MOST_LINKS {
            return problem("link", format!("more than {MOST_LINKS} links"));
        }
        for (at, link) in scenario.link.iter().enumerate() {
            let key = format!("link[{at}]");
            for (end, name) in [("from", &link.from), ("to", &link.to)] {
                check_name(format!("{key}.{end}"), name)?;
            }
            if let Some(name) = &link.name {
                check_name(format!("{key}.name"), name)?;
            }
            if link.from == link.to {
                return problem(
                    format!("{key}.to"),
                    format!("a link from \"{}\" to itself", link.from),
                );
            }
            if !link.duplex && link.back.is_some() {
                return problem(
                    format!("{key}.back"),
                    "a link with duplex = false has no reverse direction",
                );
            }
            let (from, to) = (topology.node(&link.from), topology.node(&link.to));
            topology.add_links(
                from,
                to,
                &LinkKeys {
                    key: &key,
                    name: link.name.as_deref(),
                    rate: link.rate,
                    delay: link.delay,
                    queue: link.queue.as_ref(),
                    bdp_rtt: link.bdp_rtt,
                    loss: link.loss,
                    loss_of_acks: link.loss_of_acks,
                    duplex: link.duplex,
                    back: link.back.as_ref(),
                },
            )?;
        }
        Ok(topology)
    }

    fn dumbbell(&mut self, scenario: &'a Scenario) -> Result<(), Problem> {
        let Some(dumbbell) = &scenario.dumbbell else { return Ok(()) };
        let ends = (self.node("left"), self.node("right"));
        self.ends = Some(ends);
        let keys = LinkKeys {
            key: "dumbbell",
            name: None,
            rate: dumbbell.rate,
            delay: dumbbell.delay,
            queue: dumbbell.queue.as_ref(),
            bdp_rtt: dumbbell.bdp_rtt,
            loss: dumbbell.loss,
            loss_of_acks: dumbbell.loss_of_acks,
            duplex: true,
            back: dumbbell.back.as_ref(),
        };
        self.add_links(ends.0, ends.1, &keys)
    }

    fn chain(&mut self, scenario: &'a Scenario) -> Result<(), Problem> {
        let Some(chain) = &scenario.chain else { return Ok(()) };
        if !(2..=MOST_ROUTERS).contains(&chain.routers) {
            return problem(
                "chain.routers",
                format!("a chain has from 2 to {MOST_ROUTERS} routers"),
            );
        }
        self.routers = (1..=chain.routers).map(|number| self.node(&format!("r{number}"))).collect();
        let keys = LinkKeys {
            key: "chain",
            name: None,
            rate: chain.rate,
            delay: chain.delay,
            queue: chain.queue.as_ref(),
            bdp_rtt: chain.bdp_rtt,
            loss: chain.loss,
            loss_of_acks: chain.loss_of_acks,
            duplex: true,
            back: chain.back.as_ref(),
        };
        for hop in 1..self.routers.len() {
            self.add_links(self.routers[hop - 1], self.routers[hop], &keys)?;
        }
        self.ends = self.routers.first().copied().zip(self.routers.last().copied());
        Ok(())
    }

    /// Returns the index of a node, and creates the node if there is none with this name.
    fn node(&mut self, name: &str) -> usize {
        if let Some(&index) = self.index.get(name) {
            return index;
        }
        self.index.insert(name.to_owned(), self.nodes.len());
        self.nodes.push(name.to_owned());
        self.nodes.len() - 1
    }

    /// Returns the index of an existing node.
    pub(super) fn known(&self, key: String, name: &str) -> Result<usize, Problem> {
        self.index.get(name).copied().ok_or_else(|| {
            let nodes: Vec<&str> = self.nodes.iter().map(String::as_str).collect();
            Problem::new(key, unknown_name("node", name, &nodes))
        })
    }

    /// Adds the links between two nodes, one in each direction or one alone.
    fn add_links(
        &mut self,
        from: usize,
        to: usize,
        keys: &LinkKeys<'a, '_>,
    ) -> Result<(), Problem> {
        let key = keys.key;
        if keys.bdp_rtt == Some(Span::ZERO) {
            return problem(format!("{key}.bdp_rtt"), "a round-trip time cannot be zero");
        }
        let (there, back) = match keys.name {
            Some(name) => (name.to_owned(), format!("{name}-back")),
            None => {
                let (a, b) = (&self.nodes[from], &self.nodes[to]);
                (format!("{a}-{b}"), format!("{b}-{a}"))
            }
        };
        self.add_link(
            network::Link {
                name: there,
                from,
                to,
                rate: keys.rate.finite(),
                delay: keys.delay.dur(),
                queue: PLACEHOLDER,
                loss: keys.loss.get(),
                loss_of_acks: keys.loss_of_acks,
                impairments: None,
            },
            keys,
            UnsizedQueue { queue: keys.queue, key: format!("{key}.queue"), bdp_rtt: keys.bdp_rtt },
        )?;
        if !keys.duplex {
            return Ok(());
        }
        let same = Back::default();
        let differs = keys.back.unwrap_or(&same);
        let queue_key = match differs.queue {
            Some(_) => format!("{key}.back.queue"),
            None => format!("{key}.queue"),
        };
        let queue = match keys.back {
            Some(Back { queue: Some(queue), .. }) => Some(queue),
            _ => keys.queue,
        };
        self.add_link(
            network::Link {
                name: back,
                from: to,
                to: from,
                rate: differs.rate.unwrap_or(keys.rate).finite(),
                delay: differs.delay.unwrap_or(keys.delay).dur(),
                queue: PLACEHOLDER,
                loss: differs.loss.unwrap_or(keys.loss).get(),
                loss_of_acks: differs.loss_of_acks.unwrap_or(keys.loss_of_acks),
                impairments: None,
            },
            keys,
            UnsizedQueue { queue, key: queue_key, bdp_rtt: keys.bdp_rtt },
        )
    }

    /// Adds a link, whose name must be unique.
    fn add_link(
        &mut self,
        link: network::Link,
        keys: &LinkKeys,
        queue: UnsizedQueue<'a>,
    ) -> Result<(), Problem> {
        if !self.names.insert(link.name.clone()) {
            let own = if keys.name.is_some() { "name" } else { "from" };
            return problem(
                format!("{}.{own}", keys.key),
                format!("there are two links \"{}\": set `name` of one", link.name),
            );
        }
        self.links.push(link);
        self.queues.push(queue);
        Ok(())
    }
}

/// The placeholder of a queue without a size.
const PLACEHOLDER: network::Queue =
    network::Queue::DropTail { limit: QueueLimit::Packets(u32::MAX) };
