//! Workarounds for kube (as of 5.0), which rewrites a kind's `JsonSchema` on its way into
//! `Kind::crd()`.
//!
//! kube does this because most schemas come from `schemars` and are not structural. Ours are
//! structural, and some of them break:
//!
//! | kube | example | workaround |
//! |---|---|---|
//! | hoists the `properties` of the members of `oneOf` and `anyOf`, and panics if two members define a field differently; does not hoist from members of `allOf` | the tag of an enum, `type: {enum: [A]}` in one member and `type: {enum: [B]}` in the next | [`shield_from_kube`] wraps such a member: `{allOf: [member]}` |
//! | removes the `type` from the members of an integer-or-string | `anyOf: [{type: integer}, {type: string}]` | [`shield_from_kube`] removes the members: `x-kubernetes-int-or-string` implies them |
//! | makes an optional integer-or-string nullable by default | `Option<IntOrString>` | [`deny_null`] sets `nullable: false` |
//! | adds a title and a description to the root, makes an optional status nullable, removes the description of a status with alternatives, and writes the default priority of printer columns | | none: the API server accepts both forms |
//!
//! [`shield_from_kube`] and [`deny_null`] run before kube. [`undo_kube_quirks`] removes all
//! differences from a finished CRD, so that it can be compared with the manifest, which kube did
//! not process.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::Schema;

pub(crate) fn shield_from_kube(schema: &mut Schema) {
    if schema.int_or_string {
        // kube would remove the types from these members, which are implied anyway.
        schema.any_of.clear();
    }
    for member in schema.one_of.iter_mut().chain(&mut schema.any_of) {
        if !member.properties.is_empty() {
            // kube hoists the `properties` of a member, but doesn't look for them inside an
            // `allOf`.
            let whole = std::mem::take(member);
            member.all_of = vec![whole];
        }
    }
    // A member may have nested alternatives, e.g. if two enums are flattened into one struct, or if
    // a variant contains an enum.
    let members = schema.all_of.iter_mut().chain(&mut schema.one_of);
    members.chain(&mut schema.any_of).for_each(shield_from_kube);
    let inner = schema.properties.values_mut().chain(&mut schema.items);
    inner
        .chain(&mut schema.additional_properties)
        .for_each(|part| shield_from_kube(Arc::make_mut(part)));
}

/// Sets `nullable: false` on every non-nullable integer-or-string; otherwise kube would make it
/// nullable.
pub(crate) fn deny_null(schema: &mut Map<String, Value>) {
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        schema.entry("nullable").or_insert(Value::Bool(false));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(Value::Object(inner)) = schema.get_mut(key) {
            deny_null(inner);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties
            .values_mut()
            .filter_map(Value::as_object_mut)
            .for_each(deny_null);
    }
}

/// Removes everything that kube added to a version of a CRD (an item of `spec.versions` as JSON),
/// and everything that protected its schema from kube. No-op if there is neither.
pub fn undo_kube_quirks(version: &mut Value) {
    let columns = version
        .get_mut("additionalPrinterColumns")
        .and_then(Value::as_array_mut);
    for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
        // The API server's default.
        if column.get("priority") == Some(&Value::from(0)) {
            column.remove("priority");
        }
    }
    let root = version.pointer_mut("/schema/openAPIV3Schema");
    if let Some(root) = root.and_then(Value::as_object_mut) {
        root.remove("title");
        root.remove("description");
        if let Some(status) = root.get_mut("properties").and_then(|all| all.get_mut("status")) {
            undo_in_status(status);
        }
        root.values_mut().for_each(unshield);
    }
}

fn undo_in_status(status: &mut Value) {
    if let Some(status) = status.as_object_mut() {
        status.remove("nullable");
        if status.contains_key("oneOf") || status.contains_key("anyOf") {
            status.remove("description");
        }
    }
}

/// Undoes [`shield_from_kube`] and [`deny_null`], and also removes members implied by
/// `x-kubernetes-int-or-string`.
fn unshield(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            if keys.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
                keys.remove("anyOf");
                if keys.get("nullable") == Some(&Value::Bool(false)) {
                    keys.remove("nullable");
                }
            }
            for key in ["oneOf", "anyOf"] {
                let members = keys.get_mut(key).and_then(Value::as_array_mut);
                members.into_iter().flatten().for_each(unwrap_member);
            }
            keys.values_mut().for_each(unshield);
        }
        Value::Array(items) => items.iter_mut().for_each(unshield),
        _ => {}
    }
}

fn unwrap_member(member: &mut Value) {
    let only = match member.as_object_mut() {
        Some(keys) if keys.len() == 1 => keys.get_mut("allOf").and_then(Value::as_array_mut),
        _ => None,
    };
    if let Some(inner) = only.filter(|list| list.len() == 1).and_then(Vec::pop) {
        *member = inner;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks the schema passed to kube, and that undoing it restores the original.
    fn check(schema: Value, guarded: Value) {
        let mut typed: Schema = serde_json::from_value(schema.clone()).unwrap();
        shield_from_kube(&mut typed);
        let mut found = serde_json::to_value(&typed).unwrap();
        deny_null(found.as_object_mut().unwrap());
        assert_eq!(found, guarded);
        let version =
            |schema: Value| json!({ "schema": { "openAPIV3Schema": { "properties": { "spec": schema } } } });
        let mut undone = version(found);
        undo_kube_quirks(&mut undone);
        assert_eq!(undone, version(schema));
    }

    #[test]
    fn wraps_and_unwraps_members_with_properties() {
        let tag = |name: &str| json!({ "properties": { "type": { "enum": [name] } } });
        check(
            json!({ "type": "object", "oneOf": [tag("A"), tag("B"), { "required": ["c"] }] }),
            json!({ "type": "object", "oneOf": [{ "allOf": [tag("A")] }, { "allOf": [tag("B")] }, { "required": ["c"] }] }),
        );
    }

    #[test]
    fn denies_null_only_for_kube() {
        check(
            json!({ "type": "object", "properties": { "port": { "x-kubernetes-int-or-string": true } } }),
            json!({ "type": "object", "properties": {
                "port": { "x-kubernetes-int-or-string": true, "nullable": false },
            } }),
        );
    }

    #[test]
    fn removes_what_kube_adds() {
        let mut version = json!({
            "additionalPrinterColumns": [{ "name": "Age", "priority": 0 }, { "name": "Node", "priority": 1 }],
            "schema": { "openAPIV3Schema": { "title": "Foo", "description": "A foo.", "properties": {
                "status": { "nullable": true, "description": "Its state.", "oneOf": [{ "required": ["a"] }] },
            } } },
        });
        undo_kube_quirks(&mut version);
        let expected = json!({
            "additionalPrinterColumns": [{ "name": "Age" }, { "name": "Node", "priority": 1 }],
            "schema": { "openAPIV3Schema": { "properties": { "status": { "oneOf": [{ "required": ["a"] }] } } } },
        });
        assert_eq!(version, expected);
    }
}
