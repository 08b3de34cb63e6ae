//! Compares what selectors select with the answers of kube-apiserver.
//!
//! `cargo xtask kubernetes` records the answers.

// The table is read from disk.
#![allow(clippy::disallowed_methods)]

use rbuilder_kubernetes::go::quote;
use rbuilder_kubernetes::selector::{FieldSelector, LabelSelector};
use serde_json::Value;

const NAMESPACE: &str = "selectors";

fn field<'o>(object: &'o Value, path: &str) -> &'o str {
    match path {
        "metadata.name" => object["name"].as_str().unwrap(),
        "metadata.namespace" => NAMESPACE,
        _ => unreachable!("{path}"),
    }
}

fn select_by_fields(text: &str, objects: &[Value]) -> Result<Value, String> {
    let selector = FieldSelector::parse(text)?;
    for requirement in &selector.requirements {
        let path = &requirement.field;
        if !["metadata.name", "metadata.namespace"].contains(&path.as_str()) {
            return Err(format!(
                "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                quote(path)
            ));
        }
    }
    Ok(names(objects, |object| {
        selector.matches(|path| field(object, path))
    }))
}

fn names(objects: &[Value], selects: impl Fn(&Value) -> bool) -> Value {
    let selected = objects.iter().filter(|object| selects(object));
    selected.map(|object| object["name"].clone()).collect()
}

#[test]
fn selectors_select_what_the_server_does() {
    let table = include_str!("selectors.jsonl");
    let cases: Vec<Value> = table
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let objects: Vec<Value> = cases
        .iter()
        .filter_map(|case| case.get("object").cloned())
        .collect();
    assert!(objects.len() > 3 && cases.len() > 150);
    for case in cases.iter().filter(|case| case.get("object").is_none()) {
        let answer = if let Some(text) = case["labels"].as_str() {
            LabelSelector::parse(text)
                .map(|selector| names(&objects, |object| selector.matches_map(&object["labels"])))
                .unwrap_or_else(Value::from)
        } else if let Some(text) = case["fields"].as_str() {
            select_by_fields(text, &objects).unwrap_or_else(Value::from)
        } else {
            let selector = LabelSelector::read(&case["selector"]);
            if let (Some(selector), Some(text)) = (&selector, case["text"].as_str()) {
                assert_eq!(selector.to_string(), text, "{case}");
            }
            selector.map_or(Value::Null, |selector| {
                names(&objects, |object| selector.matches_map(&object["labels"]))
            })
        };
        assert_eq!(answer, case["answer"], "{case}");
    }
}
