//! The keys of a queue. These doc comments are the descriptions of the JSON Schema.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units::{Bytes, Probability, QueueSize, Span, Threshold};

/// A queue: a limit such as `"20p"` (DropTail), a kind such as `"codel"`, or a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue(pub QueueTable);

/// A queue discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueueKind {
    /// First in, first out, up to the limit.
    #[default]
    DropTail,
    /// Random early detection.
    Red,
    /// Controlled delay (RFC 8289).
    Codel,
    /// Flow queueing with CoDel (RFC 8290).
    #[serde(rename = "fq_codel")]
    FqCodel,
    /// Flow queueing as in Linux's `fq`.
    Fq,
    /// Proportional integral controller enhanced (RFC 8033).
    Pie,
    /// Coupled dual queue for L4S (RFC 9332).
    DualPi2,
}

impl QueueKind {
    const ALL: [QueueKind; 7] = [
        QueueKind::DropTail,
        QueueKind::Red,
        QueueKind::Codel,
        QueueKind::FqCodel,
        QueueKind::Fq,
        QueueKind::Pie,
        QueueKind::DualPi2,
    ];

    /// Returns its name in a scenario.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            QueueKind::DropTail => "droptail",
            QueueKind::Red => "red",
            QueueKind::Codel => "codel",
            QueueKind::FqCodel => "fq_codel",
            QueueKind::Fq => "fq",
            QueueKind::Pie => "pie",
            QueueKind::DualPi2 => "dualpi2",
        }
    }
}

/// Defines the table of a queue: its keys besides `kind` and `limit` with the kinds that have them.
macro_rules! queue_table {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty, $($kind:ident),+;)+) => {
        /// The kind and parameters of a queue.
        #[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
        #[serde(default, deny_unknown_fields, expecting = "a queue")]
        pub struct QueueTable {
            /// `droptail` by default.
            pub kind: QueueKind,
            /// Largest queue; by default `1bdp` for DropTail, `2.5bdp` for RED, 1000p for CoDel and PIE, 10240p for FQ-CoDel, 10000p for
            /// fq, and the bytes of 250 ms for DualPI2.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub limit: Option<QueueSize>,
            $(
                $(#[doc = $doc])+
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $name: Option<$type>,
            )+
        }

        impl QueueTable {
            /// Returns a given key that the kind does not have.
            pub(super) fn foreign_key(&self) -> Option<&'static str> {
                $(
                    if self.$name.is_some() && ![$(QueueKind::$kind),+].contains(&self.kind) {
                        return Some(stringify!($name));
                    }
                )+
                None
            }

            /// Returns the keys of a kind besides `kind` and `limit`.
            pub(super) fn keys(kind: QueueKind) -> Vec<&'static str> {
                let keys = [$((stringify!($name), &[$(QueueKind::$kind),+] as &[_])),+];
                keys.iter().filter(|(_, kinds)| kinds.contains(&kind)).map(|&(name, _)| name).collect()
            }
        }
    };
}

queue_table! {
    /// RED: average queue below which no packet is dropped; by default `15%` of the limit.
    min: Threshold, Red;
    /// RED: average queue at which the drop probability is `max_p`; by default `50%` of the limit.
    max: Threshold, Red;
    /// RED: drop probability at `max`; 0.1 by default.
    max_p: Probability, Red;
    /// RED: weight of the current queue length in the moving average; 0.002 by default.
    weight: Probability, Red;
    /// RED: whether the probability rises linearly from `max` to 1 at twice `max`; true by default.
    gentle: bool, Red;
    /// RED: whether drops are spaced more evenly; true by default.
    wait: bool, Red;
    /// Whether packets of flows with `ecn` are marked instead of dropped; false by default, true for FQ-CoDel. DualPI2 always marks them.
    ecn: bool, Red, Codel, FqCodel, Pie;
    /// RED: probability above which packets of flows with `ecn` are dropped too; by default 1 for never.
    mark_p: Probability, Red;
    /// RED: mean packet size in bytes; by default that of the largest packet on the link.
    mean_packet: Bytes, Red;
    /// Target queueing delay; 5ms by default for CoDel and FQ-CoDel (on a slow link at least the time of a packet, RFC 8290 section 5.2.2),
    /// 15ms for the Classic queue of DualPI2.
    target: Span, Codel, FqCodel, DualPi2;
    /// CoDel and FQ-CoDel: time above the target before the first drop, a worst-case round-trip time; 100ms by default.
    interval: Span, Codel, FqCodel;
    /// FQ-CoDel: queueing delay above which each packet of flows with `ecn` is marked; by default none.
    ce_threshold: Span, FqCodel;
    /// FQ-CoDel and fq: number of flow queues, 1024 by default. A hash function assigns flows to them.
    flows: u32, FqCodel, Fq;
    /// FQ-CoDel and fq: bytes that a flow may send in a round; by default 1514 for FQ-CoDel and 3028 for fq.
    quantum: Bytes, FqCodel, Fq;
    /// fq: bytes that a flow may send in its first round, 15140 by default.
    initial_quantum: Bytes, Fq;
    /// fq: largest queue of a flow in packets, 100 by default.
    flow_limit: u32, Fq;
    /// PIE: target queueing delay, 15ms by default.
    qdelay_ref: Span, Pie;
    /// PIE: time between updates of the drop probability, 15ms by default.
    t_update: Span, Pie;
    /// PIE: time for which a burst after an idle period is not dropped, 150ms by default.
    max_burst: Span, Pie;
    /// PIE: drop probability from which packets of flows with `ecn` are dropped too, 0.1 by default.
    mark_ecnth: Probability, Pie;
    /// PIE: mean packet size in bytes; by default that of the largest packet on the link.
    mean_pktsize: Bytes, Pie;
    /// PIE: whether drops and marks are spaced more evenly (RFC 8033 section 5.4); true by default.
    derandomize: bool, Pie;
    /// Integral gain in Hz: 0.125 by default for PIE; for DualPI2 0.1 `tupdate` / `rtt_max`².
    alpha: f64, Pie, DualPi2;
    /// Proportional gain in Hz: 1.25 by default for PIE; for DualPI2 0.3 / `rtt_max`.
    beta: f64, Pie, DualPi2;
    /// DualPI2: worst-case round-trip time, from which the gains follow; 100ms by default.
    rtt_max: Span, DualPi2;
    /// DualPI2: time between updates of the base probability; by default the smaller of `target` and a third of `rtt_max`.
    tupdate: Span, DualPi2;
    /// DualPI2: coupling factor between the L4S and the Classic probability, 2 by default.
    k: f64, DualPi2;
    /// DualPI2: queueing delay of the L4S queue above which packets are marked, 800us by default.
    min_th: Span, DualPi2;
    /// DualPI2: width of the ramp of the marking probability from 0 to 1, 400us by default; 0 for a step.
    range: Span, DualPi2;
    /// DualPI2: packets in the L4S queue up to which its own AQM does not mark, 1 by default.
    th_len: u32, DualPi2;
    /// DualPI2: share of the Classic queue while both queues have packets; 0.1 by default, as in Linux.
    classic_protection: Probability, DualPi2;
}

/// The values of a queue in one word, for messages.
const WORDS: [&str; 11] = [
    "droptail", "red", "codel", "fq_codel", "fq", "pie", "dualpi2", "20p", "64kb", "1.5bdp",
    "infinite",
];

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
                if let Some(kind) = QueueKind::ALL.into_iter().find(|kind| kind.name() == text) {
                    table.kind = kind;
                    return Ok(Queue(table));
                }
                match QueueSize::parse(text) {
                    Ok(limit) => table.limit = Some(limit),
                    Err(_) if text.starts_with(char::is_alphabetic) => {
                        return Err(E::unknown_variant(text, &WORDS));
                    }
                    Err(message) => return Err(E::custom(message)),
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
            // A queue with a limit only is written as its limit.
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
                { "type": "string", "enum": QueueKind::ALL.map(QueueKind::name) },
                generator.subschema_for::<QueueSize>(),
                generator.subschema_for::<QueueTable>(),
            ],
        })
    }
}
