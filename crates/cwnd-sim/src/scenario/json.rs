//! JSON as TOML: one reader serves both, and it knows where a value stands.

use serde_json::{Map, Value};

/// The same document in TOML. Nulls are keys left out.
pub(super) fn to_toml(object: &Map<String, Value>) -> Result<String, String> {
    let mut text = String::new();
    for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        string(key, &mut text);
        text.push('=');
        inline(value, &mut text)?;
        text.push('\n');
    }
    Ok(text)
}

fn inline(value: &Value, text: &mut String) -> Result<(), String> {
    match value {
        Value::Null => {}
        Value::Bool(on) => text.push_str(if *on { "true" } else { "false" }),
        Value::Number(number) if number.is_u64() && !number.is_i64() => {
            return Err(format!("{number} is above 2^63 - 1"));
        }
        Value::Number(number) => text.push_str(&number.to_string()),
        Value::String(content) => string(content, text),
        Value::Array(items) => {
            text.push('[');
            for item in items.iter().filter(|item| !item.is_null()) {
                inline(item, text)?;
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(object) => {
            text.push('{');
            let mut separator = "";
            for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
                text.push_str(separator);
                string(key, text);
                text.push('=');
                inline(value, text)?;
                separator = ",";
            }
            text.push('}');
        }
    }
    Ok(())
}

/// A basic string of TOML.
fn string(content: &str, text: &mut String) {
    text.push('"');
    for c in content.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => text.push_str(&format!("\\U{:08x}", u32::from(c))),
            c => text.push(c),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e300f64..1e300).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((any::<String>(), inner), 0..4)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn nothing_is_lost(entries in proptest::collection::vec((any::<String>(), json()), 0..4)) {
            let object: Map<String, Value> = entries.into_iter().collect();
            let text = to_toml(&object).unwrap();
            let read: Map<String, Value> = toml::from_str(&text).unwrap();
            prop_assert_eq!(read, object);
        }
    }
}
