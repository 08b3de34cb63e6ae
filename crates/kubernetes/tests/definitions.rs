//! Compares the view of a CRD, before the API server gives it defaults, with that of the CRD with
//! defaults.
//!
//! `cargo xtask kubernetes` records what the server answers.

// The table is read from disk.
#![allow(clippy::disallowed_methods)]

use rbuilder_kubernetes::crd::Crd;
use serde_json::{Value, json};

/// Everything that [`Crd`] says, except for schemas.
fn view(spec: &Value) -> Value {
    let crd = json!({ "spec": spec });
    let crd = Crd::of(&crd);
    let versions = crd.versions().map(|version| {
        json!({
            "name": version.name, "served": version.is_served, "storage": version.is_storage,
            "columns": version.columns().iter().map(|column| &column["jsonPath"]).collect::<Vec<_>>(),
            "status": version.has_status(), "scale": version.scale(),
            "selectable": version.selectable_fields().collect::<Vec<_>>(),
            "deprecated": version.is_deprecated(), "warning": version.deprecation_warning(),
        })
    });
    json!({
        "names": [crd.group(), crd.kind(), crd.plural(), crd.scope()],
        "namespaced": crd.is_namespaced(), "webhook": crd.has_webhook(),
        "versions": versions.collect::<Vec<_>>(),
        "stored": crd.storage().map(|version| version.name),
        "used": crd.served().map(|version| version.name).collect::<Vec<_>>(),
    })
}

#[test]
fn defaults_change_nothing() {
    let table = include_str!("definitions.jsonl");
    assert!(table.lines().count() > 20);
    for line in table.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        match &case["answer"] {
            Value::String(_) => {}
            spec => assert_eq!(view(&case["spec"]), view(spec), "{line}"),
        }
    }
}
