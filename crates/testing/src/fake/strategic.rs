//! Strategic merge patches for built-in kinds. Lists are merged by the keys in the schema.
//!
//! Only the first of several keys is used, because `patchMergeKey` in the Go types is a single key.

use std::collections::HashSet;

use rbuilder_schema::Schema;
use serde_json::{Map, Value};

use super::fields::{Form, field_schema, form_of, item_schema};

pub(super) fn merge_strategically(value: &mut Value, patch: &Value, schema: Option<&Schema>) {
    let Value::Object(changes) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(fields) = value else { return };
    if changes.get("$patch").is_some_and(|word| word == "replace") {
        *fields = without_directives(changes);
        return;
    }
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
            merge_field(fields, name, change, field_schema(schema, name).0);
        }
    }
    for (name, order) in changes {
        if let Some(list) = name.strip_prefix("$setElementOrder/") {
            sort(fields.get_mut(list), order, field_schema(schema, list).0);
        }
    }
}

fn merge_field(fields: &mut Map<String, Value>, name: &str, change: &Value, schema: Option<&Schema>) {
    let keys = match form_of(change, schema) {
        _ if change.is_null() || change.get("$patch").is_some_and(|word| word == "delete") => {
            fields.remove(name);
            return;
        }
        // Strategic merge patches have no atomic maps, unlike server-side apply.
        _ if change.is_object() => {
            merge_strategically(fields.entry(name).or_insert(Value::Null), change, schema);
            return;
        }
        Form::Whole | Form::Map => {
            fields.insert(name.to_owned(), change.clone());
            return;
        }
        Form::Set => &[],
        Form::Keyed(keys) => keys,
    };
    let list = fields.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    if let (Value::Array(list), Value::Array(changes)) = (list, change) {
        merge_list(list, changes, keys.first(), item_schema(schema));
    }
}

fn merge_list(list: &mut Vec<Value>, changes: &[Value], key: Option<&String>, schema: Option<&Schema>) {
    let directive = |change: &Value, word: &str| change.get("$patch").is_some_and(|found| found == word);
    if changes.iter().any(|change| directive(change, "replace")) {
        let items = changes.iter().filter(|change| !directive(change, "replace"));
        *list = items.cloned().collect();
        return;
    }
    for change in changes {
        let Some(key) = key else {
            if !list.contains(change) {
                list.push(change.clone());
            }
            continue;
        };
        let position = list.iter().position(|item| item.get(key) == change.get(key));
        match position {
            Some(position) if directive(change, "delete") => {
                list.remove(position);
            }
            Some(position) => merge_strategically(&mut list[position], change, schema),
            None if directive(change, "delete") => {}
            None => list.push(change.clone()),
        }
    }
}

fn without_directives(changes: &Map<String, Value>) -> Map<String, Value> {
    let plain = changes.iter().filter(|(name, _)| !name.starts_with('$'));
    plain.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn sort(list: Option<&mut Value>, order: &Value, schema: Option<&Schema>) {
    let (Some(list), Some(order)) = (list, order.as_array()) else {
        return;
    };
    let key = match form_of(list, schema) {
        Form::Keyed(keys) => keys.first().cloned(),
        _ => None,
    };
    let Value::Array(list) = list else { return };
    let identity = |item: &Value| match &key {
        Some(key) => item.get(key).map(ToString::to_string),
        None => Some(item.to_string()),
    };
    let order: Vec<Option<String>> = order.iter().map(identity).collect();
    let known: HashSet<&Option<String>> = order.iter().collect();
    // `sort_by_key` is stable, so items not in `order` stay at the end in their current order.
    list.sort_by_key(|item| {
        let identity = identity(item);
        if known.contains(&identity) {
            order
                .iter()
                .position(|other| *other == identity)
                .unwrap_or(usize::MAX)
        } else {
            usize::MAX
        }
    });
}

#[cfg(test)]
mod tests {
    use rbuilder_catalogue::KUBERNETES;
    use serde_json::json;

    use super::*;

    fn check(mut value: Value, patch: &Value, expected: &Value) {
        let schema = KUBERNETES.schema("k8s_openapi::api::core::v1::PodSpec").unwrap();
        merge_strategically(&mut value, patch, Some(&schema));
        assert_eq!(value, *expected, "{patch}");
    }

    #[test]
    fn merges_lists_by_key() {
        let pod = json!({ "containers": [{ "name": "a", "image": "1", "args": ["x"] }, { "name": "b" }] });
        let change = json!({ "containers": [{ "name": "c" }, { "name": "a", "image": "2", "args": ["y"] }] });
        let expected = json!({ "containers": [
            { "name": "a", "image": "2", "args": ["y"] }, { "name": "b" }, { "name": "c" },
        ] });
        check(pod.clone(), &change, &expected);
        check(
            pod.clone(),
            &json!({ "containers": [{ "name": "a", "$patch": "delete" }] }),
            &json!({ "containers": [{ "name": "b" }] }),
        );
        check(
            pod.clone(),
            &json!({ "containers": [{ "$patch": "replace" }, { "name": "z" }] }),
            &json!({ "containers": [{ "name": "z" }] }),
        );
        let ordered = json!({
            "$setElementOrder/containers": [{ "name": "b" }, { "name": "a" }],
            "containers": [{ "name": "a", "image": null }],
        });
        check(
            pod,
            &ordered,
            &json!({ "containers": [{ "name": "b" }, { "name": "a", "args": ["x"] }] }),
        );
    }

    #[test]
    fn supports_replace_and_retain_keys_directives() {
        let pod = || json!({ "nodeSelector": { "a": "1", "b": "2" }, "hostNetwork": true });
        check(
            pod(),
            &json!({ "nodeSelector": { "$patch": "replace", "c": "3" } }),
            &json!({ "nodeSelector": { "c": "3" }, "hostNetwork": true }),
        );
        check(
            pod(),
            &json!({ "nodeSelector": null, "$retainKeys": ["nodeSelector"] }),
            &json!({}),
        );
    }
}
