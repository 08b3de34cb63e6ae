//! Rules with the verdicts of kube-apiserver's own code, as `cargo xtask cel` records them.
//!
//! The twin test of the library includes this file too, and asks a server about the same rules.

use serde::Deserialize;
use serde_json::{Value, json};

/// One rule with its verdict.
#[derive(Debug, Deserialize)]
pub(crate) struct Recorded {
    /// The name of the schema that it is on.
    pub(crate) schema: String,
    /// The path of the value in it.
    pub(crate) path: String,
    pub(crate) rule: String,
    /// The first error of the compiler.
    pub(crate) error: Option<String>,
    /// The cost of one run.
    pub(crate) cost: Option<u64>,
    /// The number of runs in one object.
    pub(crate) times: Option<u64>,
}

/// Returns every recorded rule, with its schema in which the rule is written.
pub(crate) fn recorded_rules() -> impl Iterator<Item = (Recorded, Value)> {
    let schemas: Value =
        serde_json::from_str(include_str!("../tests/schemas.json")).expect("schemas by name");
    let lines = include_str!("../tests/recorded.jsonl").lines();
    lines.map(move |line| {
        let recorded: Recorded = serde_json::from_str(line).expect("a record");
        let schema = place_rule(schemas[recorded.schema.as_str()].clone(), &recorded);
        (recorded, schema)
    })
}

fn place_rule(mut schema: Value, recorded: &Recorded) -> Value {
    let pointer = recorded
        .path
        .replace(".*", "/additionalProperties")
        .replace("[]", "/items")
        .replace('.', "/properties/");
    let value = schema
        .pointer_mut(&pointer)
        .expect("the value that the rule is on");
    value["x-kubernetes-validations"] = json!([{"rule": recorded.rule}]);
    schema
}
