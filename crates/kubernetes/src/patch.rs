//! Merge patches.
//!
//! Strategic ones follow `StrategicMergeMapPatch` in
//! `k8s.io/apimachinery/pkg/util/strategicpatch`, and JSON merge patches
//! `gopkg.in/evanphx/json-patch.v4`.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// How a patch changes a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListMerge<'k> {
    /// Replaces the whole list.
    Replace,
    /// Adds missing items.
    Union,
    /// Merges the items that have the same value in this field, and adds the others.
    ByKey(&'k str),
}

/// How a patch changes a value and what is in it, e.g. by its schema.
pub trait PatchStrategy: Sized {
    /// Returns the strategy for a field of an object.
    fn field(&self, name: &str) -> Self;

    /// Returns the strategy for the items of a list.
    fn items(&self) -> Self;

    /// Returns how a patch changes a list.
    fn list(&self) -> ListMerge<'_>;
}

/// Merges a patch into a value. Objects are merged by field, and a field that is `null` is removed.
/// Nothing of `$patch`, `$retainKeys`, `$deleteFromPrimitiveList` and `$setElementOrder` is left.
pub fn merge(value: &mut Value, patch: &Value, strategy: &impl PatchStrategy) {
    let Value::Object(changes) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() || is(patch, "replace") {
        *value = Value::Object(Map::new());
    }
    let Value::Object(fields) = value else { return };
    if let Some(kept) = changes.get("$retainKeys").and_then(Value::as_array) {
        fields.retain(|name, _| kept.iter().any(|kept| kept == name));
    }
    for (name, change) in changes {
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
            let gone = change.as_array().map_or(&[][..], Vec::as_slice);
            if let Some(Value::Array(found)) = fields.get_mut(list) {
                found.retain(|item| !gone.contains(item));
            }
        } else if !name.starts_with('$') {
            merge_field(fields, name, change, &strategy.field(name));
        }
    }
    for (name, order) in changes {
        if let Some(list) = name.strip_prefix("$setElementOrder/") {
            sort(fields.get_mut(list), order, strategy.field(list).list());
        }
    }
}

fn merge_field(fields: &mut Map<String, Value>, name: &str, change: &Value, strategy: &impl PatchStrategy) {
    match change {
        _ if change.is_null() || is(change, "delete") => {
            fields.remove(name);
        }
        // Merge even into nothing: what the patch removes must not end up in a new field.
        Value::Object(_) => merge(fields.entry(name).or_insert(Value::Null), change, strategy),
        Value::Array(items) if strategy.list() != ListMerge::Replace => {
            let list = fields.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(list) = list {
                merge_list(list, items, strategy);
            }
        }
        _ => {
            fields.insert(name.to_owned(), change.clone());
        }
    }
}

fn merge_list(list: &mut Vec<Value>, changes: &[Value], strategy: &impl PatchStrategy) {
    if changes.iter().any(|change| is(change, "replace")) {
        list.clear();
    }
    for change in changes.iter().filter(|change| !is(change, "replace")) {
        let is_same = |item: &Value| match strategy.list() {
            ListMerge::ByKey(key) => item.get(key) == change.get(key),
            ListMerge::Replace | ListMerge::Union => item == change,
        };
        match list.iter().position(is_same) {
            Some(position) if is(change, "delete") => {
                list.remove(position);
            }
            Some(position) => merge(&mut list[position], change, &strategy.items()),
            None if is(change, "delete") => {}
            None => {
                let mut added = Value::Null;
                merge(&mut added, change, &strategy.items());
                list.push(added);
            }
        }
    }
}

/// Merges a JSON merge patch into a value. Unlike in RFC 7386, fields that are `null` are also left
/// out of the objects in a list.
pub fn merge_json(value: &mut Value, patch: &Value) {
    match (&mut *value, patch) {
        (Value::Object(fields), Value::Object(changes)) => {
            for (name, change) in changes {
                match fields.get_mut(name) {
                    _ if change.is_null() => {
                        fields.remove(name);
                    }
                    Some(current) if !current.is_null() => merge_json(current, change),
                    _ => {
                        fields.insert(name.clone(), without_nulls(change));
                    }
                }
            }
        }
        // The server doesn't clean what replaces an object.
        (Value::Object(_), _) => *value = patch.clone(),
        _ => *value = without_nulls(patch),
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name.clone(), without_nulls(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        value => value.clone(),
    }
}

fn is(change: &Value, directive: &str) -> bool {
    change.get("$patch").is_some_and(|found| found == directive)
}

/// Items that `order` does not list stay at the end, in their current order.
fn sort(list: Option<&mut Value>, order: &Value, how: ListMerge<'_>) {
    let (Some(Value::Array(list)), Some(order)) = (list, order.as_array()) else {
        return;
    };
    let identity = |item: &Value| match how {
        ListMerge::ByKey(key) => item.get(key).map(ToString::to_string),
        ListMerge::Replace | ListMerge::Union => Some(item.to_string()),
    };
    let positions = order.iter().enumerate().rev();
    let positions: HashMap<_, usize> = positions.map(|(at, item)| (identity(item), at)).collect();
    list.sort_by_key(|item| positions.get(&identity(item)).copied().unwrap_or(usize::MAX));
}
