//! The document of a scenario as a tree of JSON values, from TOML or JSON: scenarios are
//! deserialized from one format.

use super::error::{Problem, problem};
use crate::units::{BitRate, Span};
use serde_json::{Map, Number, Value};
use toml::de::{DeFloat, DeInteger, DeTable, DeValue};

/// Reads a file that a scenario names. Returns its path for error messages and its text, or why it
/// cannot be read.
pub type ReadFile<'a> = dyn Fn(&str) -> Result<(String, String), String> + 'a;

/// Whether a value is the default and need not be written.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
pub(super) fn is_true(value: &bool) -> bool {
    *value
}
pub(super) fn yes() -> bool {
    true
}
/// Returns a default time, for the attribute of its key.
pub(super) fn millis<const MILLIS: u64>() -> Span {
    Span::millis(MILLIS)
}
/// Returns a default rate, for the attribute of its key.
pub(super) fn kbit<const KBIT: u32>() -> BitRate {
    BitRate::of(1e3 * f64::from(KBIT))
}

/// Converts JSON. A null means that the key is not given.
pub(super) fn from_json(text: &str) -> Result<Value, Problem> {
    let mut value: Value = serde_json::from_str(text)
        .map_err(|error| Problem::new("", format!("not JSON: {error}")))?;
    remove_nulls(&mut value);
    Ok(value)
}

/// Converts a TOML document. Numbers that JSON does not have, such as `inf`, are errors.
pub(super) fn from_toml(document: &DeTable) -> Result<Value, Problem> {
    object(document, "")
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(remove_nulls);
        }
        _ => {}
    }
}

/// Converts the table at `path`.
fn object(table: &DeTable, path: &str) -> Result<Value, Problem> {
    let mut object = Map::new();
    for (key, item) in table {
        let key = key.get_ref();
        let path = if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
        object.insert(key.to_string(), value(item.get_ref(), &path)?);
    }
    Ok(Value::Object(object))
}

/// Converts the value at `path`.
fn value(item: &DeValue, path: &str) -> Result<Value, Problem> {
    Ok(match item {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(integer) => Value::Number(whole(integer, path)?),
        DeValue::Float(float) => Value::Number(real(float, path)?),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(at, item)| value(item.get_ref(), &format!("{path}[{at}]")));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => object(table, path)?,
    })
}

fn whole(integer: &DeInteger, path: &str) -> Result<Number, Problem> {
    let (digits, radix) = (integer.as_str(), integer.radix());
    let signed = i64::from_str_radix(digits, radix).map(Number::from);
    match signed.or_else(|_| u64::from_str_radix(digits, radix).map(Number::from)) {
        Ok(number) => Ok(number),
        Err(_) => {
            problem(path, format!("found the integer `{integer}`, expected at most 2^64 - 1"))
        }
    }
}

fn real(float: &DeFloat, path: &str) -> Result<Number, Problem> {
    match float.as_str().parse().ok().and_then(Number::from_f64) {
        Some(number) => Ok(number),
        None => problem(path, format!("found the number `{float}`, expected a finite number")),
    }
}
