//! The queue of a scenario, and its conversion to the queue of a network.

use super::error::Problem;
use crate::check::InvalidField;
use crate::discipline::{KINDS, LinkUse, QueueKind, QueueTable};
use crate::network;
use crate::units::{QueueSize, json_schema, text_or_number};
use serde::de::{IntoDeserializer as _, value};
use serde::{Deserialize, Serialize};

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

impl Queue {
    fn parse(text: &str) -> Result<Self, String> {
        let mut table = QueueTable::default();
        let kind = QueueKind::deserialize(text.into_deserializer());
        match (kind, QueueSize::parse(text)) {
            (Ok(kind), _) => table.kind = kind,
            (_, Ok(limit)) => table.limit = Some(limit),
            (Err::<_, value::Error>(kinds), _) if text.starts_with(char::is_alphabetic) => {
                return Err(format!("{kinds}, `20p`, `64kb`, `1.5bdp`, `infinite`"));
            }
            (_, Err(message)) => return Err(message),
        }
        Ok(Queue(table))
    }
}

text_or_number!(
    Queue,
    "a queue such as \"20p\", \"1.5bdp\", \"red\" or { kind = \"red\", … }",
    Queue::parse,
    |packets: f64| Queue::parse(&packets.to_string()),
    QueueTable => Queue
);

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

json_schema!(Queue, |generator| {
    "description": "A queue: a limit (DropTail), a kind, or a table.",
    "anyOf": [
        { "type": "string", "enum": KINDS.map(|(kind, _)| kind) },
        generator.subschema_for::<QueueSize>(),
        generator.subschema_for::<QueueTable>(),
    ],
});
