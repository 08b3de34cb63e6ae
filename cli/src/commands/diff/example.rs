//! Shortens examples.

use rbuilder_compatibility::{Change, Effect, Witness};
use rbuilder_generator::yaml;
use serde_json::{Value, json};

/// Texts beyond this length are shortened.
const LONGEST_TEXT: usize = 80;

/// Lists and maps beyond this length are shortened.
const MOST_ITEMS: usize = 6;

pub(super) fn show_object(object: &Value) -> String {
    yaml::to_string(&abridge(object))
}

pub(super) fn describe_effect(change: &Change, witness: &Witness) -> Vec<String> {
    let shown = |value: &Option<Value>| match value {
        None => "absent".to_owned(),
        Some(value) => format!("`{}`", abridge(value)),
    };
    match &witness.effect {
        Effect::Refused(messages) => {
            let write = match witness.old {
                Some(_) => "this update",
                None => "this object",
            };
            let mut lines = vec![format!("{write} was accepted, and is refused:")];
            lines.extend(messages.iter().map(|message| shorten(message)));
            lines
        }
        Effect::ReadsDifferently { before, after } => {
            let field = match change.field.as_str() {
                "" => "a field".to_owned(),
                field => format!("`{field}`"),
            };
            vec![format!(
                "in this object, {field} was {}, and is {}:",
                shown(before),
                shown(after)
            )]
        }
    }
}

fn abridge(value: &Value) -> Value {
    match value {
        Value::String(text) => shorten(text).into(),
        Value::Array(items) if items.len() > MOST_ITEMS => {
            let mut shown: Vec<Value> = items.iter().take(2).map(abridge).collect();
            shown.push(format!("… ({} items)", items.len()).into());
            shown.into()
        }
        Value::Array(items) => items.iter().map(abridge).collect(),
        Value::Object(fields) => {
            let (most, is_long) = (MOST_ITEMS * 4, fields.len() > MOST_ITEMS * 4);
            let mut shown: serde_json::Map<String, Value> = fields
                .iter()
                .take(most)
                .map(|(name, value)| (shorten(name), abridge(value)))
                .collect();
            if is_long {
                shown.insert("…".to_owned(), json!(format!("({} keys)", fields.len())));
            }
            shown.into()
        }
        other => other.clone(),
    }
}

/// Shortens a generated text, which would make messages unreadable.
fn shorten(text: &str) -> String {
    let count = text.chars().count();
    match count > LONGEST_TEXT && !text.contains(' ') {
        true => format!(
            "{}… ({count} characters)",
            text.chars().take(20).collect::<String>()
        ),
        false if count > LONGEST_TEXT * 5 => {
            let (start, end): (String, String) = (
                text.chars().take(LONGEST_TEXT).collect(),
                text.chars().skip(count - LONGEST_TEXT).collect(),
            );
            format!("{start}…{end}")
        }
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_abridged() {
        let object = json!({ "text": "a".repeat(300), "list": vec![1; 20], "short": [1] });
        let shown = abridge(&object);
        assert_eq!(shown["text"], "aaaaaaaaaaaaaaaaaaaa… (300 characters)");
        assert_eq!(shown["list"], json!([1, 1, "… (20 items)"]));
        assert_eq!(shown["short"], json!([1]));
    }

    #[test]
    fn sentences_keep_their_words() {
        let message = format!("spec.a: Invalid value: {}: too long", "b ".repeat(20));
        assert_eq!(shorten(&message), message);
    }
}
