//! Prints JSON as marker literals.

use serde_json::Value;

pub(crate) fn string_literal(text: &str) -> String {
    let is_plain = !text.contains(['\\', '"']) || text.chars().any(|letter| letter.is_control());
    if is_plain {
        return format!("{text:?}");
    }
    let mut marks = String::new();
    while text.contains(&format!("\"{marks}")) {
        marks.push('#');
    }
    format!("r{marks}\"{text}\"{marks}")
}

/// Prints a value on a single line, e.g. `["a"]`, `{ "k": -1 }` or `null`.
pub(crate) fn literal(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => string_literal(text),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(literal).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(keys) if keys.is_empty() => "{}".to_owned(),
        Value::Object(keys) => {
            let keys: Vec<_> = keys
                .iter()
                .map(|(key, value)| format!("{}: {}", string_literal(key), literal(value)))
                .collect();
            format!("{{ {} }}", keys.join(", "))
        }
    }
}
