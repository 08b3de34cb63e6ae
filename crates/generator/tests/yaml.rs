//! Compares our printer with that of Go. `testdata/oracle/yaml` generates
//! `tests/yaml/vectors.json`.

use rbuilder_generator::yaml;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Vector {
    input: Value,
    yaml: String,
}

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("yaml/vectors.json")).expect("the recorded vectors are JSON")
}

#[test]
fn prints_like_go() {
    let vectors = vectors();
    assert!(vectors.len() > 600, "the recorded vectors are incomplete");
    let wrong: Vec<String> = vectors
        .iter()
        .filter(|vector| !differs_on_purpose(&vector.input))
        .filter_map(|vector| {
            let printed = yaml::to_string(&vector.input);
            (printed != vector.yaml)
                .then(|| format!("{}\ngo:\n{}\nours:\n{printed}", vector.input, vector.yaml))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        vectors.len(),
        wrong.join("\n")
    );
}

/// Go leaves these strings plain, but YAML 1.1 parsers misread them. So we quote them.
fn differs_on_purpose(input: &Value) -> bool {
    let text = input["key"]
        .as_str()
        .or_else(|| input.as_object()?.keys().next().map(String::as_str));
    text.is_some_and(|text| DIFFERENT.contains(&text))
}

const DIFFERENT: &[&str] = &[
    "<<",
    "=",
    "0xffffffffffffffffff",
    ".1_",
    "2001-13-01",
    "2001-02-29",
    "2001-02-30",
    "2001-00-10",
    "2001-01-00",
    "2001-01-01T00:00:00+2",
    "2001-01-01T00:00:00",
    "2001-01-01 00:00:00 Z",
    "2001-01-01T24:00:00Z",
    "2001-01-01T00:60:00Z",
    "2001-01-01T00:00:60Z",
];

#[test]
fn quotes_what_go_cannot_parse() {
    for text in DIFFERENT {
        assert_eq!(
            yaml::to_string(&json!({ *text: text })),
            format!("{text:?}: {text:?}\n")
        );
    }
}
