//! Constraints in prose, and values on a single line.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) label: String,
    /// Empty if the phrase says it all.
    pub(super) code: String,
}

pub(super) fn inline_value(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Whether YAML would parse the unquoted text as the same string.
fn is_plain(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(is_word)
        && !text.ends_with(':')
        && !matches!(text, "true" | "false" | "null")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quotes_ambiguous_strings() {
        for (value, expected) in [
            (json!("Always"), "Always"),
            (json!("true"), "\"true\""),
            (json!(true), "true"),
            (json!("1"), "\"1\""),
            (json!(""), "\"\""),
            (json!("a b"), "\"a b\""),
            (json!({ "a": [1] }), "{\"a\":[1]}"),
        ] {
            assert_eq!(inline_value(&value), expected);
        }
    }
}
