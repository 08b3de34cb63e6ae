//! The printer against what Go printed: `tests/yaml/vectors.json`, made by `testdata/oracle/yaml`.

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
fn prints_what_go_prints() {
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

/// Go writes these plain, and no YAML 1.1 reader takes them for text.
fn differs_on_purpose(input: &Value) -> bool {
    [json!("<<"), json!("=")].contains(&input["key"])
        || ["<<", "="].iter().any(|key| input.get(key).is_some())
}

#[test]
fn quotes_what_go_cannot_read_back() {
    let cases = [("<<", "\"<<\": \"<<\"\n"), ("=", "\"=\": \"=\"\n")];
    for (text, expected) in cases {
        assert_eq!(yaml::to_string(&json!({ text: text })), expected);
    }
}
