//! The keys of a scenario file. These doc comments are the descriptions of the JSON Schema.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::application::{Application, Arrivals, default_shape};
use super::document::{is_default, is_true, millis, yes};
use super::link::{Chain, Dumbbell, LeafSpine, Link};
pub(super) use super::queue::Queue;
use super::quic::QuicOptions;
use super::tcp::TcpOptions;
use crate::network::QuicStack;
use crate::units::{BitRate, Bytes, Probability, Span, SpanRange};

/// The largest number of flows of a scenario.
pub const MAX_FLOWS: u64 = 1_000_000;
fn one() -> u64 {
    1
}
fn is_one(value: &u64) -> bool {
    *value == 1
}

/// A network with its traffic.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a scenario")]
pub struct Scenario {
    /// A short name of letters, digits, `-` and `_`; by default that of the file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// A title of one line, for lists and plots.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What the scenario shows and where its numbers come from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Duration of the run, at most 2h.
    pub duration: Span,
    /// Duration of the warm-up, which the metrics exclude; 0 by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub warmup: Span,
    /// Sampling interval of the series, which have at most 1,000,000 samples.
    #[serde(default = "millis::<100>")]
    pub sample: Span,
    /// Default of `--seed`: the seed of a run, and of the first run of `cwnd compare` and `cwnd
    /// agree`.
    #[serde(default = "one")]
    pub seed: u64,

    /// Two routers, `left` and `right`, and the bottleneck between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dumbbell: Option<Dumbbell>,
    /// Routers `r1`, `r2`, … in a row, with equal links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<Chain>,
    /// A data centre: hosts in racks, whose leaf switches are connected by spine switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf_spine: Option<LeafSpine>,
    /// Links of any other network, which also name its nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<Link>,
    /// Whether each flow takes one of the routes with the fewest links, by a hash with the run's
    /// seed (equal-cost multipath, RFC 2992), or all take the one whose links come first. By
    /// default true with a `[leaf_spine]`, and else false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecmp: Option<bool>,
    /// Access links. With this table each flow has two hosts of its own, connected to the nodes
    /// `from` and `to`; without it flows start and end at these nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,

    /// Defaults of every TCP flow.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tcp: TcpOptions,
    /// TCP flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<Flow>,
    /// UDP sources of constant bit rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cbr: Vec<Cbr>,
    /// UDP sources with on times and off times from Pareto distributions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pareto: Vec<Pareto>,

    /// Bounds of metrics for `cwnd run --check`, by metric and group or link, such as `goodput.reno
    /// = ">= 4mbit"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub expect: BTreeMap<String, Expectation>,
}

/// Bounds of metrics, which `cwnd run --check` checks.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a bound such as \">= 4mbit\", a list of bounds or a table of them"
)]
pub enum Expectation {
    /// One bound: `>=`, `<=`, `>` or `<` and a value.
    Bound(String),
    /// Bounds that all hold.
    Bounds(Vec<String>),
    /// Bounds by the next part of the metric's name.
    Names(BTreeMap<String, Expectation>),
}

impl Expectation {
    /// Lists the bounds with their keys.
    pub(super) fn list(&self, keys: Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
        match self {
            Expectation::Bound(bound) => found.push((keys, bound.clone())),
            Expectation::Bounds(bounds) => {
                found.extend(bounds.iter().map(|bound| (keys.clone(), bound.clone())));
            }
            Expectation::Names(names) => {
                for (key, bounds) in names {
                    bounds.list([&keys[..], std::slice::from_ref(key)].concat(), found);
                }
            }
        }
    }
}

/// The links between the hosts of a flow and the network.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table of the access links")]
pub struct Access {
    /// Rate in each direction; infinite by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// Propagation delay in each direction, 0 by default; each host draws its own from a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<SpanRange>,
    /// Queues; infinite by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// A group of TCP, UDT or QUIC flows, equal but for their random draws.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of TCP flows")]
pub struct Flow {
    /// Congestion controller of the registry, such as `simd(beta=1/16)`, or one that the caller
    /// resolves, such as `mine.law(beta=1/8)` for a law in a file or `mine.py:Law(beta=1/8)` for a
    /// class of a Python file, with a path relative to the scenario. A QUIC flow may have one of its
    /// stack's own: `own:cubic`, `own:reno`, `own:bbr3` of noq, `own:bbr` of quinn.
    pub controller: String,
    /// Transport protocol. By default a window controller has TCP, and a rate controller a paced
    /// sender with receiver reports. `udt` is the UDT protocol and `quic` QUIC, with any controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The stack of a QUIC flow: `noq` by default, or `quinn`, which ignores pacing rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<QuicStack>,
    /// Name in the records, by default that of the controller. Several flows are `name-1`,
    /// `name-2`, ….
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of flows, 1 by default; with `cross`, the number on each link. 0 removes the group; a
    /// scenario has at most 1,000,000 flows.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
    /// Node of the source; by default `left` in a dumbbell, and the first router of a chain. A
    /// range of nodes such as `h2..h65` takes them in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Node of the sink; by default `right` in a dumbbell, and the last router of a chain. Or a
    /// range of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Whether `from` and `to` are exchanged; false by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reverse: bool,
    /// Whether the flows run from each router of a chain to the next; false by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cross: bool,
    /// Start time, 0 by default; each flow draws its own from a range.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: SpanRange,
    /// Time between the starts of consecutive flows, 0 by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stagger: Span,
    /// Time from which it sends no new data; by default the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// Amount of data, unlimited by default; not with `source` or `arrivals`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Changes of the payload of a data packet, as a sender makes them that discovers the path MTU
    /// (RFC 8899); of QUIC changes of the path MTU itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packet_changes: Vec<PacketChange>,
    /// The application that writes the data; by default all data is available at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Application>,
    /// Transfers that arrive as a Poisson process. Each is a flow of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Round-trip time without queueing, which sets the delay of the access links; each flow draws
    /// its own from a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<SpanRange>,
    /// Values of its access links that differ from `[access]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Whether the metrics of the run include it; true by default.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub measured: bool,
    /// Options of TCP that differ from `[tcp]`. UDT has `packet`, `header` and `window`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tcp: TcpOptions,
    /// Options of QUIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicOptions>,
}

/// A change of the payload of a flow's data packets.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of a packet size")]
pub struct PacketChange {
    /// Time of the change, from the start of the flow.
    pub at: Span,
    /// Payload of the data packets that are sent first from then on, in bytes; of QUIC the largest
    /// UDP payload that the path carries.
    pub packet: Bytes,
}

/// The transport protocol of a flow, if it is not the default one of its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// UDT version 4.
    Udt,
    /// QUIC, simulated with the implementation that `stack` names.
    Quic,
}

/// Defines the tables of UDP sources: between the common keys at the beginning and at the end, each
/// has its own.
macro_rules! sources {
    ($($(#[$attribute:meta])* pub struct $name:ident { $($own:tt)* })*) => {$(
        #[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
        $(#[$attribute])*
        pub struct $name {
            /// Rate while on, including headers.
            pub rate: BitRate,
            /// Packet size in bytes on the wire.
            #[serde(default = "default_packet")]
            pub packet: Bytes,
            $($own)*
            /// Number of sources, 1 by default; with `cross`, the number on each link. 0 removes
            /// the group; a scenario has at most 1,000,000 flows.
            #[serde(default = "one", skip_serializing_if = "is_one")]
            pub count: u64,
            /// Node of the source; by default `left` in a dumbbell, and the first router of a
            /// chain. A range of nodes such as `h2..h65` takes them in turn.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub from: Option<String>,
            /// Node of the sink; by default `right` in a dumbbell, and the last router of a chain.
            /// Or a range of nodes.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub to: Option<String>,
            /// Whether `from` and `to` are exchanged; false by default.
            #[serde(default, skip_serializing_if = "is_default")]
            pub reverse: bool,
            /// Whether sources send from each router of a chain to the next; false by default.
            #[serde(default, skip_serializing_if = "is_default")]
            pub cross: bool,
            /// Start time, 0 by default; each source draws its own from a range.
            #[serde(default, skip_serializing_if = "is_default")]
            pub start: SpanRange,
            /// Time between the starts of consecutive sources, 0 by default.
            #[serde(default, skip_serializing_if = "is_default")]
            pub stagger: Span,
            /// Stop time; by default the end of the run.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub stop: Option<Span>,
            /// Values of its access links that differ from `[access]`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub access: Option<Access>,
            /// Whether the metrics of the run include it; false by default.
            #[serde(default, skip_serializing_if = "is_default")]
            pub measured: bool,
        }
    )*};
}

sources! {
    /// UDP sources of constant bit rate, always on or periodically.
    #[serde(deny_unknown_fields, expecting = "a table of constant-bit-rate sources")]
    pub struct Cbr {
        /// On time. `on` and `off` alternate from the start; without them the source is always on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub on: Option<Span>,
        /// Off time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub off: Option<Span>,
        /// Width of the uniform distribution of the time between packets, as a fraction of its
        /// mean; 0 by default.
        #[serde(default, skip_serializing_if = "is_default")]
        pub jitter: Probability,
        /// Name in the records, `cbr` by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
    }

    /// UDP sources with on times and off times from Pareto distributions.
    #[serde(deny_unknown_fields, expecting = "a table of Pareto sources")]
    pub struct Pareto {
        /// Mean on time.
        pub on: Span,
        /// Mean off time.
        pub off: Span,
        /// Shape parameter of both distributions, above 1. Smaller values have heavier tails.
        #[serde(default = "default_shape")]
        pub shape: f64,
        /// Name in the records, `pareto` by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
    }
}

fn default_packet() -> Bytes {
    Bytes::new(1000)
}
