//! What stands in a scenario file, key by key. Doc comments here become the schema's descriptions.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tcp::TcpOptions;
use super::units::{BitRate, Bytes, Probability, QueueSize, Span, SpanRange, Threshold};

/// Serde's test for leaving out a key that has its default.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
fn is_true(value: &bool) -> bool {
    *value
}
fn yes() -> bool {
    true
}
fn one() -> u64 {
    1
}
fn is_one(value: &u64) -> bool {
    *value == 1
}

/// One network with its traffic.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a scenario")]
pub struct Scenario {
    /// A short name of letters, digits, `-` and `_`; the file's by default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// One line for lists and plots.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What the scenario shows and where its numbers come from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How long to run, at most 2h.
    pub duration: Span,
    /// Measurement begins here; the run itself begins at 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub warmup: Span,
    /// The time between two samples of the series.
    #[serde(default = "default_sample")]
    pub sample: Span,
    /// The seed of everything random, unless the run is given another.
    #[serde(default = "one")]
    pub seed: u64,

    /// Two routers, `left` and `right`, and the bottleneck between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dumbbell: Option<Dumbbell>,
    /// Routers `r1`, `r2`, … in a row, with equal links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<Chain>,
    /// Links of a network of one's own; nodes exist by being named here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<Link>,
    /// The links between each flow's own two hosts and the nodes it goes `from` and `to`.
    /// Without this table flows start and end at those nodes themselves.
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
    /// UDP sources that are on and off for times drawn from Pareto distributions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pareto: Vec<Pareto>,
}

fn default_sample() -> Span {
    Span::millis(100)
}

/// Two routers, `left` and `right`, and the bottleneck between them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of the dumbbell's bottleneck")]
pub struct Dumbbell {
    /// The bottleneck's rate each way.
    pub rate: BitRate,
    /// Its propagation delay each way.
    pub delay: Span,
    /// The queue at each end; one bandwidth-delay product of DropTail by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The round-trip time that `bdp` means; by default the longest of the flows across the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bdp_rtt: Option<Span>,
    /// Probability that a data packet is lost on the way.
    #[serde(default, skip_serializing_if = "is_default")]
    pub loss: Probability,
    /// Whether `loss` takes acknowledgements as well.
    #[serde(default, skip_serializing_if = "is_default")]
    pub loss_of_acks: bool,
    /// What is different from right to left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Back>,
}

/// Routers `r1`, `r2`, … in a row, with equal links. With `cross` flows it is a parking lot.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of the chain's links")]
pub struct Chain {
    /// How many routers: from 2 to 10000.
    #[schemars(range(min = 2, max = 10_000))]
    pub routers: u32,
    /// Each link's rate each way.
    pub rate: BitRate,
    /// Each link's propagation delay each way.
    pub delay: Span,
    /// The queue at each end; one bandwidth-delay product of DropTail by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The round-trip time that `bdp` means; by default the longest of the flows across the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bdp_rtt: Option<Span>,
    /// Probability that a data packet is lost on each link.
    #[serde(default, skip_serializing_if = "is_default")]
    pub loss: Probability,
    /// Whether `loss` takes acknowledgements as well.
    #[serde(default, skip_serializing_if = "is_default")]
    pub loss_of_acks: bool,
    /// What is different in the direction of falling numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Back>,
}

/// A link between two nodes, both ways unless `duplex = false`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of a link")]
pub struct Link {
    /// Its name in the records: `from-to` by default, and `to-from` or `name-back` the other way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The node at one end.
    pub from: String,
    /// The node at the other end.
    pub to: String,
    /// Its rate; infinite by default, so that no queue forms.
    #[serde(default = "infinite", skip_serializing_if = "is_infinite")]
    pub rate: BitRate,
    /// Its propagation delay.
    #[serde(default)]
    pub delay: Span,
    /// Its queue; one bandwidth-delay product of DropTail by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The round-trip time that `bdp` means; by default the longest of the flows across the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bdp_rtt: Option<Span>,
    /// Probability that a data packet is lost on the way.
    #[serde(default, skip_serializing_if = "is_default")]
    pub loss: Probability,
    /// Whether `loss` takes acknowledgements as well.
    #[serde(default, skip_serializing_if = "is_default")]
    pub loss_of_acks: bool,
    /// Whether the link works both ways.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub duplex: bool,
    /// What is different on the way from `to` to `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Back>,
}

fn infinite() -> BitRate {
    BitRate::INFINITE
}
fn is_infinite(rate: &BitRate) -> bool {
    *rate == BitRate::INFINITE
}

/// What is different in the other direction of a link; a key left out is the same both ways.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table of what is different on the way back")]
pub struct Back {
    /// The rate on the way back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// The propagation delay on the way back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// The queue on the way back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Probability that a data packet is lost on the way back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Probability>,
    /// Whether that takes acknowledgements as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_of_acks: Option<bool>,
}

/// The links between a flow's own hosts and the network.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table of the access links")]
pub struct Access {
    /// Their rate each way; infinite by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// Their propagation delay each way; each host draws its own from a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<SpanRange>,
    /// Their queues; infinite by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// TCP flows that differ in nothing but what is drawn.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of TCP flows")]
pub struct Flow {
    /// The congestion controller, such as `simd(beta=1/16)`. `mine.py:Law(beta=1/8)` is a class of a Python
    /// file, relative to the scenario's; `python:Law` is one that a running Python program defines.
    pub controller: String,
    /// The protocol that carries it: `udt` is UDT itself, whatever the controller is for. Without
    /// this key a controller of a window drives TCP, and one of a rate a sender that paces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Name in the records: the controller's by default. Several flows are `name-1`, `name-2`, ….
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many such flows; of `cross` flows, how many over each link.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
    /// The node it starts at; `left` in a dumbbell, the first router of a chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The node it ends at; `right` in a dumbbell, the last router of a chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Swaps `from` and `to`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reverse: bool,
    /// In a chain: flows from each router to the next.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cross: bool,
    /// When it starts; each flow draws its own from a range.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: SpanRange,
    /// How much later each flow of the group starts than the one before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stagger: Span,
    /// When it stops sending new data; the end of the run by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// How much it sends; without end by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Its round-trip time without queues: the access links are made as long as that takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<SpanRange>,
    /// Its access links, where they differ from `[access]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Whether it counts in the metrics of the run.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub measured: bool,
    /// Its TCP, where it differs from `[tcp]`; UDT has `packet`, `header` and `window`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tcp: TcpOptions,
}

/// The protocol of a flow, where it is not what its controller is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// UDT version 4, datagram by datagram.
    Udt,
}

/// UDP sources of constant bit rate, always on or on and off by the clock.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of constant-bit-rate sources")]
pub struct Cbr {
    /// Bits per second while on, headers included.
    pub rate: BitRate,
    /// Bytes of a packet on the wire.
    #[serde(default = "default_packet")]
    pub packet: Bytes,
    /// Time on; `on` and `off` repeat from the start. Always on without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Span>,
    /// Time off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<Span>,
    /// Spreads each gap between packets uniformly by this fraction of itself.
    #[serde(default, skip_serializing_if = "is_default")]
    pub jitter: Probability,
    /// Name in the records, `cbr` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many such sources.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
    /// The node it starts at; `left` in a dumbbell, the first router of a chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The node it ends at; `right` in a dumbbell, the last router of a chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Swaps `from` and `to`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reverse: bool,
    /// In a chain: sources from each router to the next.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cross: bool,
    /// When it starts; each source draws its own from a range.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: SpanRange,
    /// How much later each source of the group starts than the one before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stagger: Span,
    /// When it stops; the end of the run by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// Its access links, where they differ from `[access]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Whether it counts in the metrics of the run; background does not.
    #[serde(default, skip_serializing_if = "is_default")]
    pub measured: bool,
}

/// UDP sources that are on and off for times drawn from Pareto distributions.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of Pareto sources")]
pub struct Pareto {
    /// Bits per second while on, headers included.
    pub rate: BitRate,
    /// Bytes of a packet on the wire.
    #[serde(default = "default_packet")]
    pub packet: Bytes,
    /// Mean time on.
    pub on: Span,
    /// Mean time off.
    pub off: Span,
    /// Shape of both distributions, above 1; the smaller, the heavier the tail.
    #[serde(default = "default_shape")]
    pub shape: f64,
    /// Name in the records, `pareto` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many such sources.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
    /// The node it starts at; `left` in a dumbbell, the first router of a chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The node it ends at; `right` in a dumbbell, the last router of a chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Swaps `from` and `to`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reverse: bool,
    /// In a chain: sources from each router to the next.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cross: bool,
    /// When it starts; each source draws its own from a range.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: SpanRange,
    /// How much later each source of the group starts than the one before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stagger: Span,
    /// When it stops; the end of the run by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// Its access links, where they differ from `[access]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Whether it counts in the metrics of the run; background does not.
    #[serde(default, skip_serializing_if = "is_default")]
    pub measured: bool,
}

fn default_packet() -> Bytes {
    Bytes::new(1000)
}
fn default_shape() -> f64 {
    1.5
}

/// A queue: a limit such as `"20p"` (DropTail), a kind (`"droptail"`, `"red"`), or a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue(pub QueueTable);

/// A queue's kind and parameters. All but `kind` and `limit` are RED's.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a queue")]
pub struct QueueTable {
    /// `droptail` by default.
    pub kind: QueueKind,
    /// The largest queue: `1bdp` of DropTail, `2.5bdp` of RED by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<QueueSize>,
    /// No packet is dropped below this average queue: `15%` of the limit by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Threshold>,
    /// The average queue at which the probability is `max_p`: `50%` of the limit by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Threshold>,
    /// The probability at `max`: 0.1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_p: Option<Probability>,
    /// Weight of the newest queue length in the average: 0.002 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<Probability>,
    /// Above `max` the probability rises to 1 at twice `max`, instead of at once: true by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gentle: Option<bool>,
    /// Waits between drops, to spread them evenly: true by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<bool>,
    /// Marks packets of flows with `ecn` instead of dropping them: false by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// Drops instead of marking above this probability: 1, always marking, by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark_p: Option<Probability>,
    /// Bytes of a typical packet; by default the largest of the flows across the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_packet: Option<Bytes>,
}

/// A queue discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueueKind {
    /// First in, first out, up to the limit.
    #[default]
    DropTail,
    /// Random early detection.
    Red,
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Queue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a queue such as \"20p\", \"1.5bdp\", \"red\" or { kind = \"red\", … }")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Queue, E> {
                let mut table = QueueTable::default();
                match text {
                    "droptail" => {}
                    "red" => table.kind = QueueKind::Red,
                    _ => match QueueSize::parse(text) {
                        Ok(limit) => table.limit = Some(limit),
                        Err(_) if text.starts_with(char::is_alphabetic) => {
                            let allowed = &["droptail", "red", "20p", "64kb", "1.5bdp", "infinite"];
                            return Err(E::unknown_variant(text, allowed));
                        }
                        Err(message) => return Err(E::custom(message)),
                    },
                }
                Ok(Queue(table))
            }
            fn visit_i64<E: serde::de::Error>(self, packets: i64) -> Result<Queue, E> {
                self.visit_str(&packets.to_string())
            }
            fn visit_u64<E: serde::de::Error>(self, packets: u64) -> Result<Queue, E> {
                self.visit_str(&packets.to_string())
            }
            fn visit_f64<E: serde::de::Error>(self, packets: f64) -> Result<Queue, E> {
                self.visit_str(&packets.to_string())
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Queue, A::Error> {
                QueueTable::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    .map(Queue)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Serialize for Queue {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (&self.0, self.0.limit) {
            // A limit alone says it all.
            (table, Some(limit))
                if *table == QueueTable { limit: table.limit, ..Default::default() } =>
            {
                limit.serialize(serializer)
            }
            (table, _) => table.serialize(serializer),
        }
    }
}

impl JsonSchema for Queue {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Queue".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A queue: a limit (DropTail), a kind, or a table.",
            "anyOf": [
                { "type": "string", "enum": ["droptail", "red"] },
                generator.subschema_for::<QueueSize>(),
                generator.subschema_for::<QueueTable>(),
            ],
        })
    }
}
