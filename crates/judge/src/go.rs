//! Formats decoded values like Go, as they appear in the API server's messages.

use std::fmt::Write;

pub(crate) use rbuilder_kubernetes::go::general;
pub use rbuilder_kubernetes::go::quote;
use serde_json::{Number, Value};

/// Returns the integer if Go would decode the number as `int64` rather than `float64`.
pub(crate) fn integer(number: &Number) -> Option<i64> {
    number.as_i64()
}

pub(crate) fn as_float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

/// Formats a number like Go's `%v`.
pub(crate) fn number(number: &Number) -> String {
    match integer(number) {
        Some(integer) => integer.to_string(),
        None => general(as_float(number)),
    }
}

/// Formats a value like `%v`.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => number(value),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let mut entries: Vec<(&String, &Value)> = fields.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{key}:{}", plain(value)))
                .collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

/// Returns the name of the Go type for a decoded value, like `%T`.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if integer(number).is_some() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Formats a value like `json.Marshal`, i.e. with sorted keys, and `<`, `>` and `&` escaped.
pub fn json(value: &Value) -> String {
    let mut text = String::new();
    push_json(value, &mut text);
    text
}

fn push_json(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => match integer(number) {
            Some(integer) => text.push_str(&integer.to_string()),
            None => text.push_str(&json_float(as_float(number))),
        },
        Value::String(string) => push_json_string(string, text),
        Value::Array(items) => {
            text.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                push_json(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut entries: Vec<(&String, &Value)> = fields.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (position, (key, value)) in entries.into_iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                push_json_string(key, text);
                text.push(':');
                push_json(value, text);
            }
            text.push('}');
        }
    }
}

/// Formats a float like `json.Marshal`, whose exponents aren't padded.
pub(crate) fn json_float(value: f64) -> String {
    let size = value.abs();
    // Go uses exponents only below 1e-6 and from 1e21 on.
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

fn push_json_string(string: &str, text: &mut String) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            // Go also escapes characters that are unsafe in HTML.
            '\0'..' ' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a string is infallible.
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            character => text.push(character),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prints_like_go() {
        assert_eq!(json_float(1e-7), "1e-7");
        assert_eq!(json_float(1.5e22), "1.5e+22");
        assert_eq!(
            json(&json!({ "b": "<&>", "a": [1, 2.0, null] })),
            r#"{"a":[1,2,null],"b":"\u003c\u0026\u003e"}"#
        );
        assert_eq!(
            plain(&json!({ "b": [1, "x"], "a": null })),
            "map[a:<nil> b:[1 x]]"
        );
    }
}
