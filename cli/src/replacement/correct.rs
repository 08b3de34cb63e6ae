//! Corrects YAML until there is nothing left to correct.

use std::collections::BTreeMap;

use rbuilder_generator::Diagnostic;
use rbuilder_yaml::parse_values;
use serde_json::{Map, Value};

use super::{find_replacement, replace_all};

const ROUNDS: usize = 16;

/// Applies the replacements proposed by a text's diagnostics, and validates the result again,
/// because one mistake may hide another. Returns `None` if there is nothing to correct.
pub(crate) fn correct(text: &str, judge: &mut dyn FnMut(&str) -> Vec<Diagnostic>) -> Option<String> {
    let mut corrected = text.to_owned();
    let mut tried: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..ROUNDS {
        let diagnostics = judge(&corrected);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for diagnostic in &diagnostics {
            *counts.entry(diagnostic.text()).or_default() += 1;
        }
        // Don't retry a replacement that didn't get rid of its message.
        let is_stuck = |said: &Diagnostic| {
            let said = said.text();
            tried.get(&said).is_some_and(|before| counts[&said] >= *before)
        };
        let open = diagnostics.iter().filter(|said| !is_stuck(said));
        let replacements: Vec<_> = open
            .filter_map(|said| Some((said.text(), find_replacement(said, &corrected)?)))
            .collect();
        let (texts, replacements): (Vec<String>, Vec<_>) = replacements.into_iter().unzip();
        let (next, count) = replace_all(&corrected, replacements);
        // A replacement must not change any other values.
        if count == 0 || !is_sound(&corrected, &next, count) {
            break;
        }
        tried.extend(texts.into_iter().map(|said| (said.clone(), counts[&said])));
        corrected = next;
    }
    (corrected != text).then_some(corrected)
}

/// Whether the texts differ in at most as many values as there were replacements.
fn is_sound(before: &str, after: &str, replacements: usize) -> bool {
    let (Ok(before), Ok(after)) = (read(before), read(after)) else {
        return false;
    };
    let mut differences = 0;
    let is_same_length = before.len() == after.len();
    is_same_length
        && before
            .iter()
            .zip(&after)
            .all(|(before, after)| count_differences(before, after, &mut differences))
        && differences <= replacements
}

fn read(text: &str) -> Result<Vec<Value>, serde_saphyr::Error> {
    match parse_values(text) {
        Ok(values) => Ok(values),
        // Allow duplicate fields, one of the mistakes that we correct.
        Err(_) => Ok(rbuilder_yaml::parse_nodes(text)?
            .iter()
            .map(rbuilder_yaml::Node::value)
            .collect()),
    }
}

/// Counts changed scalars, renamed fields and removed items. Returns false for any other
/// difference.
fn count_differences(before: &Value, after: &Value, count: &mut usize) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => count_in_fields(before, after, count),
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => before
            .iter()
            .zip(after)
            .all(|(before, after)| count_differences(before, after, count)),
        (Value::Array(before), Value::Array(after)) => {
            let mut rest = before.iter();
            *count += before.len().saturating_sub(after.len());
            after.iter().all(|item| rest.any(|before| before == item))
        }
        (Value::Object(_) | Value::Array(_), _) | (_, Value::Object(_) | Value::Array(_)) => false,
        (before, after) => {
            *count += usize::from(before != after);
            true
        }
    }
}

fn count_in_fields(before: &Map<String, Value>, after: &Map<String, Value>, count: &mut usize) -> bool {
    let mut gone: Vec<&Value> = Vec::new();
    for (name, value) in before {
        match after.get(name) {
            Some(same) if !count_differences(value, same, count) => return false,
            Some(_) => {}
            None => gone.push(value),
        }
    }
    let new = after.iter().filter(|(name, _)| !before.contains_key(*name));
    for (_, value) in new {
        // The value of a renamed field may have been corrected as well.
        let position = gone.iter().position(|gone| {
            let mut differences = 0;
            count_differences(gone, value, &mut differences)
        });
        let Some(position) = position else { return false };
        count_differences(gone.swap_remove(position), value, count);
        *count += 1;
    }
    gone.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_corrected_values_may_change() {
        for (before, after, replacements, expected) in [
            ("a: '1'\nb: 2\n", "a: 1\nb: 2\n", 1, true),
            ("a: '1'\nb: '2'\n", "a: 1\nb: 2\n", 1, false),
            ("a: 1\n", "b: 1\n", 1, true),
            ("a: { x: 1, y: 2 }\n", "b: { x: 3, y: 2 }\n", 2, true),
            ("a: 1\nc: 1\n", "b: 1\n", 1, false),
            ("a: [1, 2, 1]\n", "a: [1, 2]\n", 1, true),
            ("a: [1, 2, 1]\n", "a: [2, 3]\n", 1, false),
            ("a: 1\na: 1\n", "a: 1\n", 1, true),
            ("a: 1\n", "a: [1]\n", 1, false),
            ("a: 1\n---\nb: 1\n", "a: 1\n", 1, false),
            ("a: 1\n", "a: [\n", 1, false),
        ] {
            assert_eq!(is_sound(before, after, replacements), expected, "{before}{after}");
        }
    }

    #[test]
    fn correction_without_effect_is_made_once() {
        let mut rounds = 0;
        let mut judge = |_: &str| {
            rounds += 1;
            let place = rbuilder_generator::FileRange::new("a.yaml", 3..3 + 4);
            let said = Diagnostic::error(place, "a: Unsupported value: \"x\"");
            vec![said.help(match rounds % 2 {
                1 => "did you mean `size`?",
                _ => "did you mean `sise`?",
            })]
        };
        assert_eq!(correct("a: sise\n", &mut judge), None);
        assert!(rounds < 5, "{rounds}");
    }
}
