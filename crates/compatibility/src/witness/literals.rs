//! Values that a CEL rule compares with.

use rbuilder_schema::Cel;
use serde_json::{Value, json};

/// Limit for sizes mentioned in a rule.
const LONGEST: i64 = 2_000;

/// Literals in a rule along with similar values, because rules tend to compare with their literals.
pub(super) fn literals(rule: &Cel) -> Vec<Value> {
    let text = &rule.rule;
    let mut values = Vec::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find(['\'', '"']) {
        let (before, quoted) = rest.split_at(start);
        values.extend(numbers(before));
        let quote = quoted.chars().next().unwrap_or('"');
        let Some(end) = quoted[1..].find(quote) else { break };
        let inner = &quoted[1..=end];
        values.extend([
            json!(inner),
            json!(format!("{inner}x")),
            json!(inner.to_uppercase()),
        ]);
        rest = &quoted[end + 2..];
    }
    values.extend(numbers(rest));
    values.dedup();
    values
}

/// Integers with their neighbors, plus strings of those lengths in case the rule checks a length.
fn numbers(text: &str) -> Vec<Value> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != '.');
    let mut values = Vec::new();
    for number in words.filter_map(|word| word.parse::<i64>().ok()) {
        let near = [
            number,
            number.saturating_add(1),
            number.saturating_sub(1),
            number.saturating_neg(),
        ];
        values.extend(near.map(Value::from));
        for length in near.into_iter().filter(|length| (0..=LONGEST).contains(length)) {
            values.push("a".repeat(usize::try_from(length).unwrap_or_default()).into());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_texts_and_numbers_with_their_neighbours() {
        let rule = Cel {
            rule: "self.a != 'off' && size(self.b) < 3".to_owned(),
            ..Cel::default()
        };
        let found = literals(&rule);
        for value in [
            json!("off"),
            json!("offx"),
            json!(3),
            json!(4),
            json!("aaa"),
            json!("aaaa"),
        ] {
            assert!(found.contains(&value), "{value} in {found:?}");
        }
    }
}
