//! Quantities with units as in `tc`: `15mbit`, `100ms`, `20p`, `1.5bdp`.
//!
//! Each type is read from a string with a unit, or from a number in the base unit. It is written as
//! a short string that is read as the same value. Errors are one sentence that says what was
//! expected.

mod count;
mod queue_size;
mod range;
mod rate;
mod size;
mod time;

pub use count::Count;
pub use queue_size::{MAX_PACKETS, QueueSize, Threshold};
pub use range::Range;
pub(crate) use rate::UNITS as RATES;
pub use rate::{BitRate, ChangedRate, RateRange};
pub use size::{Bytes, Probability};
pub(crate) use time::UNITS as TIMES;
pub use time::{MAX_DURATION, Span, SpanRange, Timestamps};

/// A number with its unit.
pub(crate) struct Quantity<'a> {
    pub number: f64,
    pub unit: &'a str,
}

/// Splits `15mbit` into 15 and `mbit`. `what` is the expected quantity, for the error.
pub(crate) fn split<'a>(text: &'a str, what: &str) -> Result<Quantity<'a>, String> {
    let trimmed = text.trim();
    let bytes = trimmed.as_bytes();
    let mut end = 0;
    while end < bytes.len() {
        let exponent = matches!(bytes[end], b'e' | b'E')
            && end > 0
            && match bytes.get(end + 1) {
                Some(b'+' | b'-') => bytes.get(end + 2).is_some_and(u8::is_ascii_digit),
                Some(next) => next.is_ascii_digit(),
                None => false,
            };
        match bytes[end] {
            b'0'..=b'9' | b'.' => end += 1,
            b'+' | b'-' if end == 0 => end += 1,
            // A digit follows, after a sign or not.
            _ if exponent => end += 2,
            _ => break,
        }
    }
    // All bytes before `end` are ASCII, so that `end` is a character boundary.
    let (number, unit) = trimmed.split_at(end);
    match number.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Quantity { number, unit: unit.trim_start() }),
        Ok(_) => Err(format!("`{}` is too large", shorten(text))),
        Err(_) => Err(format!("`{}` is not {what}", shorten(text))),
    }
}

/// Returns at most 40 characters of a text, for an error of one line.
pub(crate) fn shorten(text: &str) -> String {
    let clean: String =
        text.chars().take(40).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(40).is_some() { format!("{clean}…") } else { clean }
}

/// Implements `Deserialize` for a type that is read from text by `$text` or from a number by
/// `$number`, both `-> Result<Self, impl Display>`, or from a table of type `$table` by `$from`.
/// `$more` are the methods of the visitor for other values.
macro_rules! text_or_number {
    ($type:ident, $expecting:literal, $text:expr, $number:expr, $table:ty => $from:expr) => {
        $crate::units::text_or_number!($type, $expecting, $text, $number, {
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<$type, A::Error> {
                let map = serde::de::value::MapAccessDeserializer::new(map);
                <$table as serde::Deserialize>::deserialize(map).map($from)
            }
        });
    };
    ($type:ident, $expecting:literal, $text:expr, $number:expr, { $($more:item)* }) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        ($text)(text).map_err(E::custom)
                    }
                    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<$type, E> {
                        ($number)(number).map_err(E::custom)
                    }
                    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<$type, E> {
                        self.visit_f64(number as f64)
                    }
                    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$type, E> {
                        self.visit_f64(number as f64)
                    }
                    $($more)*
                }
                deserializer.deserialize_any(Visitor)
            }
        }
    };
}
pub(crate) use text_or_number;

/// Implements `JsonSchema` for a type: its name, and this schema.
macro_rules! json_schema {
    ($type:ident, |$generator:pat_param| $schema:tt) => {
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema($generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}
pub(crate) use json_schema;

/// Defines a table of a scenario file with its required keys and its optional ones. An optional key
/// that is missing is `None`, and is not written.
macro_rules! table {
    ($(#[$attribute:meta])* pub struct $name:ident { $($required:tt)* } optional {
        $($(#[$about:meta])* $key:ident: $type:ty,)*
    }) => {
        #[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
        #[derive(schemars::JsonSchema)]
        $(#[$attribute])*
        pub struct $name {
            $($required)*
            $(
                $(#[$about])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $key: Option<$type>,
            )*
        }
    };
}
pub(crate) use table;

/// Implements `FromStr`, `Deserialize` from a string or a number, `Serialize` as a string, and
/// `JsonSchema`.
///
/// The type provides `parse(&str)` and `number(f64)`, both `-> Result<Self, String>`, and
/// `Display`.
macro_rules! quantity {
    ($type:ident, $expecting:literal, $description:literal, $pattern:literal, $examples:tt) => {
        impl std::str::FromStr for $type {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                Self::parse(text)
            }
        }

        $crate::units::text_or_number!($type, $expecting, $type::parse, $type::number, {});

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        $crate::units::json_schema!($type, |_| {
            "description": $description,
            "type": ["string", "number"],
            "pattern": $pattern,
            "minimum": 0,
            "examples": $examples,
        });
    };
}
use quantity;

#[cfg(test)]
mod tests;
