//! Applies the changes of a typed defaulting function to the original object from the API server.
//!
//! The object may contain fields that aren't part of the type, and the type may serialize fields
//! that the object does not contain. For example, suppose that `{"size": 1, "new": true}` is
//! decoded to a type without the field `new`, but with a field `on` that defaults to `false`. The
//! function sets `size` to 2, so the result is `{"size": 2, "on": false}`. Comparing this to the
//! original object would remove `new` and add `on`.
//!
//! Instead, we serialize the typed object both before and after the call. This results in `{"size":
//! 1, "on": false}` and `{"size": 2, "on": false}`, and we only apply the difference between these
//! two.

use serde_json::{Map, Value};

use super::items::match_items;

/// Applies the difference between `before` and `after` to `object`.
pub(super) fn carry_over(object: &Value, before: &Value, after: &Value) -> Value {
    if before == after {
        return object.clone();
    }
    match (object, before, after) {
        (Value::Object(object), Value::Object(before), Value::Object(after)) => {
            Value::Object(carry_over_map(object, before, after))
        }
        // If the lengths differ, we can't tell which items of `object` and `before` correspond.
        (Value::Array(object), Value::Array(before), Value::Array(after)) if object.len() == before.len() => {
            let items = after.iter().zip(match_items(before, after));
            let carried = items.map(|(after, origin)| match origin {
                Some(at) => carry_over(&object[at], &before[at], after),
                None => after.clone(),
            });
            Value::Array(carried.collect())
        }
        _ => after.clone(),
    }
}

fn carry_over_map(
    object: &Map<String, Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Map<String, Value> {
    let mut carried = object.clone();
    for (key, after) in after {
        match (object.get(key), before.get(key)) {
            // The function hasn't changed this field, so keep the object's value, even if the type
            // reads it differently.
            (_, Some(before)) if before == after => {}
            (Some(object), Some(before)) => {
                carried.insert(key.clone(), carry_over(object, before, after));
            }
            _ => {
                carried.insert(key.clone(), after.clone());
            }
        }
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        carried.remove(key);
    }
    carried
}

/// Returns a JSON patch ([RFC 6902](https://www.rfc-editor.org/rfc/rfc6902)), or `None` if the
/// objects are equal.
pub(super) fn json_patch_between(from: &Value, to: &Value) -> Option<Vec<u8>> {
    let patch = json_patch::diff(from, to);
    // Serializing paths and JSON values can't fail.
    (!patch.0.is_empty()).then(|| serde_json::to_vec(&patch).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(object: Value, before: Value, after: Value, expected: Value) {
        assert_eq!(carry_over(&object, &before, &after), expected);
        let mut patched = object.clone();
        if let Some(patch) = json_patch_between(&object, &expected) {
            let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
            json_patch::patch(&mut patched, &patch).unwrap();
        }
        assert_eq!(patched, expected);
    }

    #[test]
    fn fields_unknown_to_the_type_are_kept() {
        check(
            json!({"spec": {"size": 1, "unknown": {"a": [1]}}, "extra": true}),
            json!({"spec": {"size": 1}}),
            json!({"spec": {"size": 2, "color": "red"}}),
            json!({"spec": {"size": 2, "color": "red", "unknown": {"a": [1]}}, "extra": true}),
        );
    }

    #[test]
    fn defaulted_fields_do_not_count_as_changes() {
        let sent = json!({"spec": {}});
        check(
            sent.clone(),
            json!({"spec": {"on": false}}),
            json!({"spec": {"on": false}}),
            sent.clone(),
        );
        assert_eq!(json_patch_between(&sent, &sent), None);
        check(
            sent,
            json!({"spec": {"on": false}}),
            json!({"spec": {"on": true}}),
            json!({"spec": {"on": true}}),
        );
    }

    #[test]
    fn removed_fields_are_removed() {
        check(
            json!({"a": 1, "b": 2, "c": 3}),
            json!({"a": 1, "b": 2}),
            json!({"a": 1}),
            json!({"a": 1, "c": 3}),
        );
    }

    #[test]
    fn list_items_keep_unknown_fields() {
        check(
            json!([{"name": "a", "new": 1}, {"name": "b", "new": 2}]),
            json!([{"name": "a"}, {"name": "b"}]),
            json!([{"name": "a"}, {"name": "c"}, {"name": "d"}]),
            json!([{"name": "a", "new": 1}, {"name": "c"}, {"name": "d"}]),
        );
        check(json!([1, 2]), json!([1, 2]), json!([1]), json!([1]));
    }

    #[test]
    fn unknown_fields_follow_their_item_when_others_are_inserted_or_removed() {
        check(
            json!([{"name": "a", "new": 1}, {"name": "b", "new": {"x": 2}}]),
            json!([{"name": "a"}, {"name": "b"}]),
            json!([{"name": "sidecar"}, {"name": "b", "size": 3}]),
            json!([{"name": "sidecar"}, {"name": "b", "size": 3, "new": {"x": 2}}]),
        );
        check(
            json!([{"path": "/a", "new": 1}, {"path": "/b", "new": 2}]),
            json!([{"path": "/a"}, {"path": "/b"}]),
            json!([{"path": "/new"}, {"path": "/a"}, {"path": "/b"}]),
            json!([{"path": "/new"}, {"path": "/a", "new": 1}, {"path": "/b", "new": 2}]),
        );
    }

    #[test]
    fn value_of_a_different_type_is_replaced() {
        check(
            json!({"a": {"b": 1}}),
            json!({"a": {"b": 1}}),
            json!({"a": 5}),
            json!({"a": 5}),
        );
        check(
            json!({"a/b~c": 1}),
            json!({"a/b~c": 1}),
            json!({"a/b~c": 2}),
            json!({"a/b~c": 2}),
        );
    }
}
