//! The queue of a scenario, and its conversion to the queue of a network.

use super::error::Problem;
use crate::check::InvalidField;
use crate::discipline::{KINDS, LinkUse, QueueKind, QueueTable};
use crate::network;
use crate::units::QueueSize;
use schemars::JsonSchema;
use serde::de::IntoDeserializer as _;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A queue: a limit such as `"20p"` (DropTail), a kind such as `"codel"`, or a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue(pub QueueTable);

/// Compiles the queue of a link.
pub(super) fn compile(
    queue: Option<&Queue>,
    key: &str,
    link: &LinkUse,
) -> Result<network::Queue, Problem> {
    let default = QueueTable::default();
    let table = queue.map_or(&default, |queue| &queue.0);
    if let Some(message) = foreign_key(table) {
        return Err(Problem::new(key, message));
    }
    network::Queue::new(table, link).map_err(|InvalidField { field, message }| match field {
        // Each may be a default.
        "limit" | "min" | "max" => Problem::new(key, message),
        _ => Problem::new(format!("{key}.{field}"), message),
    })
}

/// Returns an error if a key is given that the kind does not have.
fn foreign_key(table: &QueueTable) -> Option<String> {
    let given = serde_json::to_value(table).ok()?;
    let (_, keys) = KINDS.iter().find(|(kind, _)| *kind == table.kind)?;
    let mut all = KINDS.iter().flat_map(|(_, keys)| *keys);
    let foreign = all.find(|key| given.get(key).is_some() && !keys.contains(key))?;
    let name = given.get("kind")?.as_str()?;
    Some(if keys.is_empty() {
        format!("a {name} queue has no keys but `kind` and `limit`; `{foreign}` needs another kind")
    } else {
        format!("a {name} queue has no key `{foreign}`; it has limit, {}", keys.join(", "))
    })
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
                let kind = QueueKind::deserialize(text.into_deserializer());
                match (kind, QueueSize::parse(text)) {
                    (Ok(kind), _) => table.kind = kind,
                    (_, Ok(limit)) => table.limit = Some(limit),
                    (Err::<_, E>(kinds), _) if text.starts_with(char::is_alphabetic) => {
                        let limits = "`20p`, `64kb`, `1.5bdp`, `infinite`";
                        return Err(E::custom(format_args!("{kinds}, {limits}")));
                    }
                    (_, Err(message)) => return Err(E::custom(message)),
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
                { "type": "string", "enum": KINDS.map(|(kind, _)| kind) },
                generator.subschema_for::<QueueSize>(),
                generator.subschema_for::<QueueTable>(),
            ],
        })
    }
}
