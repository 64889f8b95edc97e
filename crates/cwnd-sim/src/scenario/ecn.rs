//! The ECN codepoint of a flow.

use std::fmt;

use crate::units::json_schema;

/// Explicit congestion notification of a flow: `false`, `true` for ECT(0) (RFC 3168), or `"l4s"`
/// for ECT(1) (RFC 9331).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    Off,
    /// ECT(0).
    Classic,
    /// ECT(1), the identifier of L4S.
    L4s,
}

impl<'de> serde::Deserialize<'de> for Ecn {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Ecn;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or \"l4s\"")
            }
            fn visit_bool<E: serde::de::Error>(self, on: bool) -> Result<Ecn, E> {
                Ok(if on { Ecn::Classic } else { Ecn::Off })
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Ecn, E> {
                match text {
                    "l4s" => Ok(Ecn::L4s),
                    _ => Err(E::unknown_variant(text, &["l4s"])),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl serde::Serialize for Ecn {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Ecn::Off => serializer.serialize_bool(false),
            Ecn::Classic => serializer.serialize_bool(true),
            Ecn::L4s => serializer.serialize_str("l4s"),
        }
    }
}

json_schema!(Ecn, |_| {
    "description": "Explicit congestion notification: true for ECT(0), \"l4s\" for ECT(1).",
    "anyOf": [{ "type": "boolean" }, { "type": "string", "enum": ["l4s"] }],
});
