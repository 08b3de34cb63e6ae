//! Compares the format checks with results recorded from the API server's code
//! (`cargo xtask formats`).

use std::collections::BTreeMap;

use rbuilder_schema::{FORMATS, accepts_format, example_of_format, format_type};
use serde::Deserialize;

#[derive(Deserialize)]
struct Recorded {
    format: String,
    text: String,
    accepted: bool,
}

fn recorded() -> Vec<Recorded> {
    let lines = include_str!("formats.jsonl").lines();
    lines
        .map(|line| serde_json::from_str(line).expect("a verdict"))
        .collect()
}

/// Strings with an unknown result: versions of the API server differ, or the input is too rare to
/// implement.
const UNDECIDED: usize = 4;

#[test]
fn accepts_strings_as_recorded() {
    let mut wrong = Vec::new();
    let mut undecided = Vec::new();
    for Recorded {
        format,
        text,
        accepted,
    } in recorded()
    {
        match accepts_format(&format, &text) {
            Some(found) if found == accepted => {}
            Some(found) => wrong.push(format!("{format} {text:?}: expected {accepted}, found {found}")),
            None => undecided.push(format!("{format} {text:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(undecided.len() <= UNDECIDED, "{}", undecided.join("\n"));
}

#[test]
fn every_string_format_is_recorded() {
    let mut strings: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    let recorded = recorded();
    for each in &recorded {
        strings.entry(&each.format).or_default()[usize::from(each.accepted)] += 1;
    }
    for format in FORMATS {
        let is_of_strings = format_type(format) == Some(rbuilder_schema::SchemaType::String);
        assert_eq!(strings.contains_key(format), is_of_strings, "{format}");
        let [refused, accepted] = strings.get(format).copied().unwrap_or_default();
        // Any string is a password, and `datetime` is an alias of `date-time`.
        if is_of_strings && !["password", "datetime"].contains(format) {
            assert!(
                refused + accepted >= 15 && refused > 0 && accepted > 0,
                "{format}"
            );
        }
    }
}

#[test]
fn examples_are_accepted() {
    for format in FORMATS {
        if let Some(example) = example_of_format(format) {
            assert_eq!(accepts_format(format, example), Some(true), "{format} {example}");
        }
    }
}
