//! Groups of flows: the common form of the tables `[[flow]]`, `[[cbr]]` and `[[pareto]]`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use cwnd::registry::{Spec, SpecError};

use super::application::Arrivals;
use super::arrivals::Arrival;
use super::error::{Problem, in_table, problem};
use super::format::{Access, Cbr, Flow, PacketChange, Pareto, Protocol, Scenario};
use super::tcp::TcpOptions;
use super::topology::check_name;
use super::{quic, tcp};
use crate::network::{self, Application, Traffic, custom_name, kernel_name, law_name, own_name};
use crate::units::{Bytes, Span, SpanRange};

/// Flows of one table of the file, equal but for their numbers and random draws.
pub(super) struct Group<'a> {
    /// The group's key, such as `flow[1]`.
    pub key: String,
    /// The name in the file.
    pub name: Option<&'a str>,
    /// The name if the file has none.
    pub base: String,
    /// The number of flows; for cross traffic, the number on each link.
    pub count: u64,
    /// The node of the sources in the file.
    pub from: Option<&'a str>,
    /// The node of the sinks in the file.
    pub to: Option<&'a str>,
    /// Whether sources and sinks are exchanged.
    pub reverse: bool,
    /// Whether flows run from each router of a chain to the next.
    pub cross: bool,
    /// Start times.
    pub start: SpanRange,
    /// Time between the starts of consecutive flows.
    pub stagger: Span,
    /// Stop time.
    pub stop: Option<Span>,
    /// The round-trip time without queueing.
    pub rtt: Option<SpanRange>,
    /// The group's own access links.
    pub access: Option<&'a Access>,
    /// Whether metrics include the flows.
    pub measured: bool,
    /// The source.
    pub traffic: Arc<Traffic>,
    /// The application of each flow.
    pub application: Option<Arc<Application>>,
    /// The process of arrivals; each flow is one.
    pub arrivals: Option<&'a Arrivals>,
    /// The arrivals of this seed, if `arrivals` is given.
    pub drawn: Vec<Arrival>,
}

impl Group<'_> {
    /// The path of a key of the group.
    pub(super) fn at(&self, key: &str) -> String {
        format!("{}.{key}", self.key)
    }
}

/// Creates a group from a table. The three kinds of tables share these keys.
macro_rules! group {
    ($table:expr, $key:expr, $base:expr, $rtt:expr, $traffic:expr) => {{
        let table = $table;
        if let Some(name) = &table.name {
            check_name(format!("{}.name", $key), name)?;
        }
        Group {
            key: $key,
            name: table.name.as_deref(),
            base: $base,
            count: table.count,
            from: table.from.as_deref(),
            to: table.to.as_deref(),
            reverse: table.reverse,
            cross: table.cross,
            start: table.start,
            stagger: table.stagger,
            stop: table.stop,
            rtt: $rtt,
            access: table.access.as_ref(),
            measured: table.measured,
            traffic: Arc::new($traffic),
            application: None,
            arrivals: None,
            drawn: Vec::new(),
        }
    }};
}

/// Returns the groups of a scenario, in the order of the records.
pub(super) fn groups(scenario: &Scenario) -> Result<Vec<Group<'_>>, Problem> {
    let mut groups = Vec::new();
    for (at, table) in scenario.flow.iter().enumerate() {
        groups.push(flow(scenario, table, format!("flow[{at}]"))?);
    }
    for (at, table) in scenario.cbr.iter().enumerate() {
        groups.push(cbr(table, format!("cbr[{at}]"))?);
    }
    for (at, table) in scenario.pareto.iter().enumerate() {
        groups.push(pareto(table, format!("pareto[{at}]"))?);
    }
    Ok(groups)
}

/// Checks a controller's specification and returns the controller's name.
fn controller(key: &str, spec: &str) -> Result<String, Problem> {
    if let Some(name) = custom_name(spec).or_else(|| kernel_name(spec)) {
        check_name(format!("{key}.controller"), name)?;
        return Ok(name.to_owned());
    }
    if let Some(name) = own_name(spec) {
        check_name(format!("{key}.controller"), name)?;
        return Ok(format!("own-{name}"));
    }
    match (Spec::parse(spec), law_name(spec)) {
        // The caller declares laws in files after it has read the scenario.
        (Err(SpecError::UnknownName(_)), Some(law)) => {
            check_name(format!("{key}.controller"), law)?;
            Ok(law.to_owned())
        }
        (Err(SpecError::UnknownName(name)), None)
            if name.to_ascii_lowercase().ends_with(".law") =>
        {
            let message = format!("{name}: the name of a file with a law ends in .law");
            problem(format!("{key}.controller"), message)
        }
        (Ok(spec), law) => Ok(law.unwrap_or(spec.name()).to_owned()),
        (Err(error), _) => problem(format!("{key}.controller"), error.to_string()),
    }
}

fn flow<'a>(scenario: &Scenario, table: &'a Flow, key: String) -> Result<Group<'a>, Problem> {
    let base = controller(&key, &table.controller)?;
    let (spec, own_key) = (&table.controller, format!("{key}.tcp"));
    check_protocol(table, &key)?;
    let options = tcp::Layers { own: &table.tcp, own_key: &own_key, common: &scenario.tcp };
    let traffic = match table.protocol {
        None => {
            let mut tcp = tcp::compile(spec, table.bytes, &options)?;
            tcp.packet_changes = packet_changes(table);
            tcp.check_packet_changes().map_err(in_table(&key))?;
            Traffic::Tcp(tcp)
        }
        Some(Protocol::Udt) => Traffic::Udt(tcp::compile_udt(spec, table.bytes, &options)?),
        Some(Protocol::Quic) => {
            let (stack, options) = (table.stack, table.quic.as_ref());
            let changes = packet_changes(table);
            Traffic::Quic(quic::compile(spec, table.bytes, stack, options, changes, &key)?)
        }
    };
    if table.rtt.is_some() && table.access.as_ref().is_some_and(|access| access.delay.is_some()) {
        return problem(
            format!("{key}.rtt"),
            "give either rtt or access.delay: rtt determines the delay of the access links",
        );
    }
    let fixed = match table.protocol {
        None => table.source.is_some(),
        Some(protocol) => protocol != Protocol::Quic,
    };
    if fixed && !table.packet_changes.is_empty() {
        let message = "only flows of QUIC, and of TCP or of a rate law without `source`, change \
                       their packet size";
        return problem(format!("{key}.packet_changes"), message);
    }
    let mut application = None;
    if let Some(source) = &table.source {
        application = Some(source.compile(&format!("{key}.source"))?.into());
    }
    let sets_bytes = [table.bytes.is_some(), table.source.is_some(), table.arrivals.is_some()];
    if sets_bytes.into_iter().filter(|&given| given).count() > 1 {
        return problem(
            key,
            "give one of `bytes`, `source` and `arrivals`: each determines the data",
        );
    }
    if table.arrivals.is_some() {
        check_arrivals(table, &key)?;
    }
    let arrivals = table.arrivals.as_ref();
    Ok(Group { application, arrivals, ..group!(table, key, base, table.rtt, traffic) })
}

/// Checks that the protocol of a flow has the flow's controller and keys.
fn check_protocol(table: &Flow, key: &str) -> Result<(), Problem> {
    let (spec, quic) = (&table.controller, table.protocol == Some(Protocol::Quic));
    if table.protocol.is_some() && kernel_name(spec).is_some() {
        let message = format!("{spec} controls TCP only: remove `protocol`");
        return problem(format!("{key}.controller"), message);
    }
    if !quic && own_name(spec).is_some() {
        let message = format!("{spec} is a controller of a QUIC stack: add `protocol = \"quic\"`");
        return problem(format!("{key}.controller"), message);
    }
    let several = table.quic.as_ref().is_some_and(|own| own.streams > Some(1));
    let given = [
        ("stack", !quic && table.stack.is_some(), "only QUIC flows have a stack"),
        ("quic", !quic && table.quic.is_some(), "only QUIC flows have these options"),
        ("tcp", quic && table.tcp != TcpOptions::default(), "QUIC has none of these options"),
        ("source", quic && several && table.source.is_some(), "it writes to one stream"),
    ];
    match given.into_iter().find(|(_, wrong, _)| *wrong) {
        Some((field, _, message)) => problem(format!("{key}.{field}"), message),
        None => Ok(()),
    }
}

/// Checks the keys that determine the number of flows and their starts beside `arrivals`.
fn check_arrivals(table: &Flow, key: &str) -> Result<(), Problem> {
    let conflict = if table.count > 1 {
        "count"
    } else if table.cross {
        "cross"
    } else if table.stagger != Span::ZERO {
        "stagger"
    } else if table.start.low() != table.start.high() {
        return problem(format!("{key}.start"), "arrivals begin at one time, not in a range");
    } else {
        return Ok(());
    };
    problem(
        format!("{key}.{conflict}"),
        "arrivals determine the number and the starts of the flows: write one group for each process",
    )
}

fn cbr(table: &Cbr, key: String) -> Result<Group<'_>, Problem> {
    let schedule = match (table.on, table.off) {
        (Some(on), Some(off)) => Some((on.dur(), off.dur())),
        (None, None) => None,
        (Some(_), None) => return problem(format!("{key}.on"), "needs `off` beside it"),
        (None, Some(_)) => return problem(format!("{key}.off"), "needs `on` beside it"),
    };
    let traffic = Traffic::Cbr {
        rate: table.rate.get(),
        packet: packet_size(table.packet),
        schedule,
        jitter: table.jitter.get(),
    };
    traffic.check().map_err(in_table(&key))?;
    Ok(group!(table, key, "cbr".to_owned(), None, traffic))
}

fn pareto(table: &Pareto, key: String) -> Result<Group<'_>, Problem> {
    let traffic = Traffic::Pareto {
        rate: table.rate.get(),
        packet: packet_size(table.packet),
        on: table.on.dur(),
        off: table.off.dur(),
        shape: table.shape,
    };
    traffic.check().map_err(in_table(&key))?;
    Ok(group!(table, key, "pareto".to_owned(), None, traffic))
}

fn packet_changes(table: &Flow) -> Vec<network::PacketChange> {
    let compile = |change: &PacketChange| network::PacketChange {
        at: change.at.dur(),
        packet: packet_size(change.packet),
    };
    table.packet_changes.iter().map(compile).collect()
}

/// Returns a packet size. Sizes above 32 bits saturate: they are too large in any case.
fn packet_size(packet: Bytes) -> u32 {
    u32::try_from(packet.get()).unwrap_or(u32::MAX)
}

/// Names the flows. A flow that is alone under its name has that name; several are numbered:
/// `simd-1`, `simd-2`, ….
///
/// Groups without a name of their own that have the same controller are numbered together.
pub(super) struct Names<'a> {
    /// The number of flows that share the name of a controller.
    total: HashMap<&'a str, u64>,
    /// How many of them have been named.
    named: HashMap<&'a str, u64>,
}

/// The names of a group's flows.
enum NamesOfGroup<'a> {
    /// One flow, without a number.
    Single(&'a str),
    /// `name-1` to `name-n`, from one number to another.
    Numbered(&'a str, RangeInclusive<u64>),
}

impl<'a> Names<'a> {
    /// Counts the flows of groups; each group comes with its number of flows.
    pub(super) fn new<'g>(groups: impl Iterator<Item = (&'a Group<'g>, u64)>) -> Self
    where
        'g: 'a,
    {
        let mut total = HashMap::new();
        for (group, size) in groups.filter(|(group, _)| group.name.is_none()) {
            *total.entry(group.base.as_str()).or_default() += size;
        }
        Names { total, named: HashMap::new() }
    }

    /// Returns the names of the next group, of `size` flows.
    fn of_group(&mut self, group: &'a Group, size: u64) -> NamesOfGroup<'a> {
        match group.name {
            Some(name) if size == 1 => NamesOfGroup::Single(name),
            Some(name) => NamesOfGroup::Numbered(name, 1..=size),
            None => {
                let base = group.base.as_str();
                if size == 1 && self.total.get(base) == Some(&1) {
                    return NamesOfGroup::Single(base);
                }
                let named = self.named.entry(base).or_default();
                let first = *named + 1;
                *named += size;
                NamesOfGroup::Numbered(base, first..=*named)
            }
        }
    }

    /// Returns the names of the flows of the next group, of `size` flows, in order.
    pub(super) fn next_group(
        &mut self,
        group: &'a Group,
        size: u64,
    ) -> impl Iterator<Item = String> + use<'a> {
        let (single, numbered) = match self.of_group(group, size) {
            NamesOfGroup::Single(name) => (Some(name.to_owned()), None),
            NamesOfGroup::Numbered(name, numbers) => {
                (None, Some(numbers.map(move |number| format!("{name}-{number}"))))
            }
        };
        single.into_iter().chain(numbered.into_iter().flatten())
    }
}

/// Checks that no two flows have the same name.
pub(super) fn check_names(groups: &[Group], sizes: &[u64]) -> Result<(), Problem> {
    let sized = || groups.iter().zip(sizes.iter().copied()).filter(|&(_, size)| size > 0);
    let mut names = Names::new(sized());
    let mut singles = HashSet::new();
    // Names of single flows that end in a number, such as `a-7`: the numbers by the part before
    // them.
    let mut like_numbered: HashMap<&str, BTreeSet<u64>> = HashMap::new();
    // For each name with numbers the largest one, and whether the groups have that name themselves.
    let mut numbered: HashMap<&str, (u64, bool)> = HashMap::new();
    for (group, size) in sized() {
        let own_name = group.name.is_some();
        let taken = match names.of_group(group, size) {
            NamesOfGroup::Single(name) => {
                let parts = split_number(name);
                if let Some((base, number)) = parts {
                    like_numbered.entry(base).or_default().insert(number);
                }
                let in_numbered = parts.is_some_and(|(base, number)| {
                    numbered.get(base).is_some_and(|&(largest, _)| number <= largest)
                });
                (!singles.insert(name) || in_numbered).then(|| name.to_owned())
            }
            NamesOfGroup::Numbered(name, numbers) => {
                let (first, last) = (*numbers.start(), *numbers.end());
                // Groups that share a controller's name count on; all others begin at 1.
                let before = numbered.insert(name, (last, own_name));
                let begun = before.is_some_and(|(_, named)| named || own_name);
                let like = like_numbered.get(name).and_then(|like| like.range(numbers).next());
                let number = if begun { Some(first) } else { like.copied() };
                number.map(|number| format!("{name}-{number}"))
            }
        };
        if let Some(name) = taken {
            let key = if own_name { ".name" } else { "" };
            return problem(
                format!("{}{key}", group.key),
                format!("there are two flows \"{name}\": set `name` of one group"),
            );
        }
    }
    Ok(())
}

/// Splits `name-7` into `name` and 7. `None` if no flow is numbered like this.
fn split_number(name: &str) -> Option<(&str, u64)> {
    let (base, digits) = name.rsplit_once('-')?;
    let number = digits.parse().ok().filter(|number: &u64| *number > 0)?;
    (number.to_string() == digits).then_some((base, number))
}
