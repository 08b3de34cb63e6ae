//! The limit on the work of searches.

use rbuilder_compatibility::{Budget, Change, Level, compare, compare_within};
use serde_json::{Value, json};

/// A CRD with fields that contain strings of at most `longest` characters.
fn crd(fields: usize, longest: u32) -> Value {
    let properties: serde_json::Map<String, Value> = (0..fields)
        .map(|field| {
            (
                format!("text{field}"),
                json!({ "type": "string", "maxLength": longest }),
            )
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "cups.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "kind": "Cup", "plural": "cups", "singular": "cup", "listKind": "CupList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": { "type": "object", "properties": properties } },
                } },
            }],
        },
    })
}

fn with_budget(budget: &Budget) -> Vec<Change> {
    compare_within(&[crd(40, 9)], &[crd(40, 5)], budget).expect("a CRD")
}

#[test]
fn used_up_budget_ends_the_search_and_keeps_the_level_of_the_rule() {
    let budget = Budget::of(200);
    let changes = with_budget(&budget);
    assert_eq!(budget.left(), 0);
    assert_eq!(changes.len(), 40);
    let (found, cut): (Vec<&Change>, Vec<&Change>) =
        changes.iter().partition(|change| change.witness.is_some());
    assert!(!found.is_empty() && !cut.is_empty(), "{changes:?}");
    for change in &found {
        assert!(!change.is_cut_short, "{change:?}");
    }
    for change in &cut {
        assert!(change.is_cut_short, "{change:?}");
        assert_eq!(change.level, change.rule.level);
        assert_eq!(change.level, Level::Breaking);
    }
    assert_eq!(changes, with_budget(&Budget::of(200)));
}

#[test]
fn default_budget_suffices_for_ordinary_changes() {
    let changes = compare(&[crd(40, 9)], &[crd(40, 5)]).expect("a CRD");
    assert_eq!(changes.len(), 40);
    assert!(changes.iter().all(|change| change.witness.is_some()));
}

#[test]
fn without_steps_nothing_is_searched() {
    let changes = with_budget(&Budget::of(0));
    assert_eq!(changes.len(), 40);
    for change in changes {
        assert_eq!((change.tried, change.is_cut_short), (Some(0), true));
    }
}
