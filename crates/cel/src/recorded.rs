//! Rules with the results of kube-apiserver's own code, recorded by `cargo xtask cel`.
//!
//! Also included by a test in the library, which sends the same rules to a server.

use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) schema: String,
    pub(crate) path: String,
    pub(crate) rule: String,
    /// The first compile error, if any.
    pub(crate) error: Option<String>,
    /// Cost of a single run.
    pub(crate) cost: Option<u64>,
    /// Maximum number of runs per object.
    pub(crate) times: Option<u64>,
}

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
