//! Nodes and links of a scenario, without traffic.

use std::collections::{HashMap, HashSet};

use super::error::{Problem, problem, unknown_name};
use super::format::{Queue, Scenario};
use super::impairments;
use super::link::{Back, LeafSpine, LinkKeys};
use crate::network::{self, InvalidField};
use crate::units::{Count, Span};

/// The largest number of `[[link]]`s.
const MAX_LINKS: usize = 100_000;
/// The largest number of characters of a name.
const MAX_NAME_LENGTH: usize = 64;

/// The network without traffic. The sizes of queues depend on the flows.
#[derive(Default)]
pub(super) struct Topology<'a> {
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// The index of each node by its name.
    pub index: HashMap<String, usize>,
    /// One-way links. Their queues are placeholders.
    pub links: Vec<network::Link>,
    /// The queue of each link in the file; `None` if it is infinite.
    pub queues: Vec<Option<UnsizedQueue<'a>>>,
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

/// The table of a link.
struct LinkTable<'a, 'k> {
    key: &'k str,
    name: Option<&'a str>,
    keys: LinkKeys<'a>,
    bdp_rtt: Option<Span>,
    duplex: bool,
    back: Option<&'a Back>,
}

/// Checks a name, which is used in records, file names and derived names such as `a-b`.
pub(super) fn check_name(key: impl Into<String>, name: &str) -> Result<(), Problem> {
    if name.is_empty() {
        problem(key, "a name cannot be empty")
    } else if name.chars().count() > MAX_NAME_LENGTH {
        problem(key, format!("a name has at most {MAX_NAME_LENGTH} letters"))
    } else if !name.chars().all(network::is_in_names) {
        let shown = crate::units::shorten(name);
        problem(key, format!("\"{shown}\" is not a name: use letters, digits, - and _"))
    } else {
        Ok(())
    }
}

impl<'a> Topology<'a> {
    /// Creates the nodes and links of a scenario.
    pub(super) fn new(scenario: &'a Scenario) -> Result<Self, Problem> {
        let mut topology = Topology::default();
        let tables = [
            ("dumbbell", scenario.dumbbell.is_some()),
            ("chain", scenario.chain.is_some()),
            ("leaf_spine", scenario.leaf_spine.is_some()),
        ];
        let mut given = tables.into_iter().filter(|(_, given)| *given).map(|(name, _)| name);
        if let (Some(one), Some(other)) = (given.next(), given.next()) {
            return problem(other, format!("a network is a [{one}] or a [{other}], not both"));
        }
        if tables.iter().all(|(_, given)| !given) && scenario.link.is_empty() {
            let all = "a [dumbbell], a [chain], a [leaf_spine] or [[link]]s";
            return problem("", format!("no network: write {all}"));
        }
        topology.dumbbell(scenario)?;
        topology.chain(scenario)?;
        if let Some(table) = &scenario.leaf_spine {
            topology.leaf_spine(table)?;
        }
        if scenario.link.len() > MAX_LINKS {
            return problem("link", format!("more than {MAX_LINKS} links"));
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
            let table = LinkTable::new(&key, link.keys(), link.bdp_rtt, link.back.as_ref());
            let table = LinkTable { name: link.name.as_deref(), duplex: link.duplex, ..table };
            topology.add_links(from, to, &table)?;
        }
        Ok(topology)
    }

    fn dumbbell(&mut self, scenario: &'a Scenario) -> Result<(), Problem> {
        let Some(dumbbell) = &scenario.dumbbell else { return Ok(()) };
        let ends = (self.node("left"), self.node("right"));
        self.ends = Some(ends);
        let (keys, back) = (dumbbell.keys(), dumbbell.back.as_ref());
        let table = LinkTable::new("dumbbell", keys, dumbbell.bdp_rtt, back);
        table.check_required()?;
        self.add_links(ends.0, ends.1, &table)
    }

    fn chain(&mut self, scenario: &'a Scenario) -> Result<(), Problem> {
        let Some(chain) = &scenario.chain else { return Ok(()) };
        self.routers =
            (1..=chain.routers.get()).map(|number| self.node(&format!("r{number}"))).collect();
        let (keys, back) = (chain.keys(), chain.back.as_ref());
        let table = LinkTable::new("chain", keys, chain.bdp_rtt, back);
        table.check_required()?;
        for hop in 1..self.routers.len() {
            self.add_links(self.routers[hop - 1], self.routers[hop], &table)?;
        }
        self.ends = self.routers.first().copied().zip(self.routers.last().copied());
        Ok(())
    }

    fn leaf_spine(&mut self, table: &'a LeafSpine) -> Result<(), Problem> {
        let [leaves, spines, hosts] = [table.leaves, table.spines, table.hosts].map(Count::get);
        let links = 2 * u64::from(leaves) * (u64::from(spines) + u64::from(hosts));
        if links > MAX_LINKS as u64 {
            let message = format!("{links} links in all; at most {MAX_LINKS}");
            return problem("leaf_spine.hosts", message);
        }
        let link = |key, keys| LinkTable::new(key, keys, table.bdp_rtt, None);
        let (rate, delay) = (Some(&table.rate), Some(&table.delay));
        let keys = LinkKeys { rate, delay, queue: table.queue.as_ref(), ..LinkKeys::default() };
        let own = &table.fabric;
        let (rate, delay, queue) = (own.rate.as_ref(), own.delay.as_ref(), own.queue.as_ref());
        let fabric = LinkKeys { rate, delay, queue, ..LinkKeys::default() }.or(keys);
        for leaf in 1..=leaves {
            let switch = self.node(&format!("leaf{leaf}"));
            for host in (leaf - 1) * hosts + 1..=leaf * hosts {
                let host = self.node(&format!("h{host}"));
                self.add_links(host, switch, &link("leaf_spine", keys))?;
                // The first of the two links is that of the host.
                let from_host = self.queues.len() - 2;
                self.queues[from_host] = None;
            }
            for spine in 1..=spines {
                let spine = self.node(&format!("spine{spine}"));
                self.add_links(switch, spine, &link("leaf_spine.fabric", fabric))?;
            }
        }
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

    /// Returns the indices of a node, or of those of a range such as `h2..h65`.
    pub(super) fn known_range(&self, key: &str, text: &str) -> Result<Vec<usize>, Problem> {
        let Some((first, last)) = text.split_once("..") else {
            return Ok(vec![self.known(key.to_owned(), text)?]);
        };
        let number = |name: &str| {
            let base = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
            let digits = &name[base.len()..];
            let number: u32 = digits.parse().ok()?;
            // Leading zeros are part of the name of a node: `h04` is not `h4`.
            (digits == number.to_string()).then(|| (base.to_owned(), number))
        };
        let range = match (number(first), number(last)) {
            (Some((base, low)), Some((other, high))) if base == other && low < high => {
                Some((base, low..=high))
            }
            _ => None,
        };
        let Some((base, numbers)) = range else {
            let shown = crate::units::shorten(text);
            return problem(key, format!("\"{shown}\" is not a range of nodes such as h2..h65"));
        };
        numbers.map(|number| self.known(key.to_owned(), &format!("{base}{number}"))).collect()
    }

    /// Adds the links between two nodes, one in each direction or one alone.
    fn add_links(
        &mut self,
        from: usize,
        to: usize,
        table: &LinkTable<'a, '_>,
    ) -> Result<(), Problem> {
        let key = table.key;
        if table.bdp_rtt == Some(Span::ZERO) {
            return problem(format!("{key}.bdp_rtt"), "a round-trip time cannot be zero");
        }
        let (there, back) = match table.name {
            Some(name) => (name.to_owned(), format!("{name}-back")),
            None => {
                let (a, b) = (&self.nodes[from], &self.nodes[to]);
                (format!("{a}-{b}"), format!("{b}-{a}"))
            }
        };
        self.add_link(table, there, [from, to], table.keys, |own| format!("{key}.{own}"))?;
        if !table.duplex {
            return Ok(());
        }
        let own = table.back.map(Back::keys);
        // The key of an error is that of the reverse direction if it is given there.
        let place = |name: &str| {
            let given = own.is_some_and(|own| own.gives(name));
            if given { format!("{key}.back.{name}") } else { format!("{key}.{name}") }
        };
        let keys = table.keys.reverse(table.back);
        table.check_traces(&keys)?;
        for (lost, name) in [
            (table.keys.sets_rate() && !keys.sets_rate() && keys.rate.is_none(), "rate"),
            (table.keys.sets_delay() && !keys.sets_delay() && keys.delay.is_none(), "delay"),
        ] {
            if lost {
                let message = format!("missing `{name}`, which the other direction does not have");
                return problem(format!("{key}.back"), message);
            }
        }
        self.add_link(table, back, [to, from], keys, place)
    }

    /// Adds one direction of a link, whose name must be unique. `place` returns the path of a key,
    /// for errors.
    fn add_link(
        &mut self,
        table: &LinkTable,
        name: String,
        ends: [usize; 2],
        keys: LinkKeys<'a>,
        place: impl Fn(&str) -> String,
    ) -> Result<(), Problem> {
        if !self.names.insert(name.clone()) {
            let own = if table.name.is_some() { "name" } else { "from" };
            return problem(
                format!("{}.{own}", table.key),
                format!("there are two links \"{name}\": set `name` of one"),
            );
        }
        let link = impairments::compile(name, ends, &keys, &place)?;
        if let Err(InvalidField { field, message }) = link.check_impairments() {
            return problem(place(field), message);
        }
        self.links.push(link);
        self.queues.push(Some(UnsizedQueue {
            queue: keys.queue,
            key: place("queue"),
            bdp_rtt: table.bdp_rtt,
        }));
        Ok(())
    }
}

impl<'a, 'k> LinkTable<'a, 'k> {
    /// A link in both directions without a name of its own.
    fn new(
        key: &'k str,
        keys: LinkKeys<'a>,
        bdp_rtt: Option<Span>,
        back: Option<&'a Back>,
    ) -> Self {
        LinkTable { key, name: None, keys, bdp_rtt, duplex: true, back }
    }

    /// Checks that a table without defaults has a rate and a delay.
    fn check_required(&self) -> Result<(), Problem> {
        let keys = &self.keys;
        for (given, name) in [
            (keys.rate.is_some() || keys.sets_rate(), "rate"),
            (keys.delay.is_some() || keys.sets_delay(), "delay"),
        ] {
            if !given {
                return problem(self.key, format!("missing `{name}`"));
            }
        }
        Ok(())
    }

    /// Checks that a trace of one direction is not silently that of the other, whose keys are
    /// `back`, and that the other one has a rate.
    fn check_traces(&self, back: &LinkKeys) -> Result<(), Problem> {
        let (key, own) = (self.key, self.back.map(Back::keys));
        let own_trace = own.is_some_and(|own| own.trace.is_some());
        if back.trace.is_some() && !own_trace {
            return problem(
                format!("{key}.trace"),
                format!(
                    "a trace is of one direction: set `{key}.back.trace` too, which may be the \
                     same file, or `{key}.back.rate`"
                ),
            );
        }
        if own_trace && self.keys.rate.is_none() && !self.keys.sets_rate() {
            return problem(
                format!("{key}.back.trace"),
                format!("a trace is of one direction: set `{key}.trace` or `{key}.rate` too"),
            );
        }
        Ok(())
    }
}
