//! The fields that objects lose between the versions of a CRD.

use rbuilder_compatibility::{Budget, Change, Effect, Level, Losses, compare, find_losses};
use serde_json::{Value, json};

/// Returns a CRD with the given versions: name, whether objects are stored in it, and the schema of
/// `spec`.
fn crd(versions: &[(&str, bool, Value)]) -> Value {
    let version = |(name, storage, spec): &(&str, bool, Value)| {
        json!({
            "name": name, "served": true, "storage": storage, "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "spec": spec, "status": { "type": "object", "properties": { "size": { "type": "integer" } } },
            } } },
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "cups.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "kind": "Cup", "plural": "cups" },
            "versions": versions.iter().map(version).collect::<Vec<_>>(),
        },
    })
}

fn object(fields: Value) -> Value {
    json!({ "type": "object", "properties": fields })
}

fn losses(crd: &Value) -> Losses {
    find_losses(std::slice::from_ref(crd), &Budget::default()).expect("a CRD")
}

/// Returns the messages of changes, each with the values before and after.
fn described(changes: &[Change]) -> Vec<(String, Option<Value>, Option<Value>)> {
    let describe = |change: &Change| {
        assert_eq!(change.rule.name, "conversion-loses-field");
        let witness = change.witness.as_ref().map(|witness| witness.effect.clone());
        let Some(Effect::ReadsDifferently { before, after }) = witness else {
            panic!("no example: {change:?}");
        };
        (change.message.clone(), before, after)
    };
    changes.iter().map(describe).collect()
}

#[test]
fn field_that_only_one_version_has_is_lost_on_the_way_to_the_other() {
    let first = object(json!({ "size": { "type": "integer" }, "old": { "type": "boolean" } }));
    let second = object(
        json!({ "size": { "type": "integer" }, "new": object(json!({ "a": { "type": "boolean" } })) }),
    );
    let found = losses(&crd(&[("v1", false, first), ("v2", true, second)]));
    assert_eq!((found.pairs, found.converted_by_webhook.len()), (1, 0));
    let found = described(&found.changes);
    let messages: Vec<&str> = found.iter().map(|(message, ..)| message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "an object written in `v1` loses `spec.old` when it is stored in `v2`",
            "a stored object loses `spec.new` when a client of `v1` reads it and writes it back",
        ]
    );
    for (_, before, after) in found {
        assert!(before.is_some() && after.is_none());
    }
}

#[test]
fn lost_field_with_a_default_reads_as_the_default() {
    let first = object(json!({ "colour": { "type": "string", "default": "white" } }));
    let found = losses(&crd(&[("v1", false, first), ("v2", true, object(json!({})))]));
    let found = described(&found.changes);
    let [(_, before, after)] = found.as_slice() else {
        panic!("one loss: {found:?}");
    };
    assert_eq!(after, &Some(json!("white")));
    assert_ne!(before, after);
}

#[test]
fn versions_with_the_same_fields_lose_nothing() {
    let first = object(json!({ "size": { "type": "integer", "maximum": 9 } }));
    let second = object(json!({ "size": { "type": "integer", "maximum": 5 } }));
    assert_eq!(
        losses(&crd(&[
            ("v1", false, first.clone()),
            ("v2", true, second),
            ("v3", false, first)
        ])),
        Losses {
            pairs: 2,
            ..Losses::default()
        }
    );
}

#[test]
fn versions_that_keep_unknown_fields_lose_nothing() {
    let first = object(json!({ "size": { "type": "integer" } }));
    let second = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    assert_eq!(
        losses(&crd(&[("v1", false, first), ("v2", true, second)])).changes,
        []
    );
}

#[test]
fn webhook_is_not_guessed() {
    let mut crd = crd(&[
        ("v1", false, object(json!({ "a": { "type": "string" } }))),
        ("v2", true, object(json!({}))),
    ]);
    crd["spec"]["conversion"] = json!({ "strategy": "Webhook" });
    assert_eq!(
        losses(&crd),
        Losses {
            converted_by_webhook: vec!["cups.example.com".to_owned()],
            ..Losses::default()
        }
    );
}

/// A conversion does not validate, so a field that only the other version requires hides no loss.
#[test]
fn loss_is_found_if_the_other_version_requires_another_field() {
    let first = object(json!({ "a": { "type": "string" } }));
    let mut second = object(json!({ "b": { "type": "string" } }));
    second["required"] = json!(["b"]);
    let before = crd(&[("v1", true, first.clone())]);
    let after = crd(&[("v1", false, first), ("v2", true, second)]);
    let changes = compare(&[before], std::slice::from_ref(&after)).expect("CRDs");
    let missing = changes
        .iter()
        .find(|change| change.rule.name == "conversion-missing");
    let missing = missing.unwrap_or_else(|| panic!("{changes:?}"));
    assert_eq!(missing.level, Level::Breaking);
    assert!(missing.witness.is_some());
    assert_eq!(described(&losses(&after).changes).len(), 2);
}
