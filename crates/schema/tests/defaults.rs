//! Compares the checks of defaults with results recorded from kube-apiserver.
//!
//! Each line in defaults.jsonl contains a schema, a default, and when kube-apiserver rejects it:
//! with the CRD, or with every object that receives the default.
//!
//! No `xtask` task writes this file: add lines by hand. `crates/runtime/tests/twin/defaults.rs`
//! sends each to a real server and fails if its verdict differs:
//! `cargo test --workspace --test twin recorded_default` with `KUBEBUILDER_ASSETS`.

use rbuilder_schema::{Schema, check_default};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Recorded {
    schema: Value,
    default: Value,
    refused: Option<String>,
}

#[test]
fn rejects_defaults_as_recorded() {
    let mut wrong = Vec::new();
    let mut counts = [0; 2];
    for line in include_str!("defaults.jsonl").lines() {
        let Recorded {
            schema,
            default,
            refused,
        } = serde_json::from_str(line).expect("a verdict");
        let read: Schema = serde_json::from_value(schema.clone()).expect("a schema");
        let found = check_default(&default, &read);
        counts[usize::from(refused.is_none())] += 1;
        if found.is_err() != refused.is_some() {
            wrong.push(format!(
                "{default} by {schema}: expected {refused:?}, found {found:?}"
            ));
        }
    }
    assert!(counts.iter().all(|count| *count >= 100), "{counts:?}");
    assert!(wrong.is_empty(), "{} times:\n{}", wrong.len(), wrong.join("\n"));
}
