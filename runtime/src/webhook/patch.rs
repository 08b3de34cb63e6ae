//! What a typed function changed, carried over to the object as the API server has it.
//!
//! The type may know fewer fields than the object has, and may write fields that the object leaves out. So what counts
//! is the difference between the typed object before and after, not the difference to what was sent.

use serde_json::{Map, Value};

/// `object` with what changed from `before` to `after`.
pub(super) fn carry_over(object: &Value, before: &Value, after: &Value) -> Value {
    if before == after {
        return object.clone();
    }
    match (object, before, after) {
        (Value::Object(object), Value::Object(before), Value::Object(after)) => {
            Value::Object(carry_over_map(object, before, after))
        }
        (Value::Array(object), Value::Array(before), Value::Array(after)) if object.len() == before.len() => {
            let items = after.iter().enumerate();
            let carried = items.map(|(at, after)| match (object.get(at), before.get(at)) {
                (Some(object), Some(before)) => carry_over(object, before, after),
                _ => after.clone(),
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

/// The JSON patch (RFC 6902) from one object to another; nothing when they are alike.
pub(super) fn difference(from: &Value, to: &Value) -> Option<Vec<u8>> {
    let patch = json_patch::diff(from, to);
    // Serializing paths and JSON values cannot fail.
    (!patch.0.is_empty()).then(|| serde_json::to_vec(&patch).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(object: Value, before: Value, after: Value, expected: Value) {
        assert_eq!(carry_over(&object, &before, &after), expected);
        let mut patched = object.clone();
        if let Some(patch) = difference(&object, &expected) {
            let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
            json_patch::patch(&mut patched, &patch).unwrap();
        }
        assert_eq!(patched, expected);
    }

    #[test]
    fn what_the_type_does_not_know_stays() {
        check(
            json!({"spec": {"size": 1, "unknown": {"a": [1]}}, "extra": true}),
            json!({"spec": {"size": 1}}),
            json!({"spec": {"size": 2, "color": "red"}}),
            json!({"spec": {"size": 2, "color": "red", "unknown": {"a": [1]}}, "extra": true}),
        );
    }

    #[test]
    fn what_the_type_writes_by_itself_is_no_change() {
        let sent = json!({"spec": {}});
        check(
            sent.clone(),
            json!({"spec": {"on": false}}),
            json!({"spec": {"on": false}}),
            sent.clone(),
        );
        assert_eq!(difference(&sent, &sent), None);
        check(
            sent,
            json!({"spec": {"on": false}}),
            json!({"spec": {"on": true}}),
            json!({"spec": {"on": true}}),
        );
    }

    #[test]
    fn what_was_taken_away_goes() {
        check(
            json!({"a": 1, "b": 2, "c": 3}),
            json!({"a": 1, "b": 2}),
            json!({"a": 1}),
            json!({"a": 1, "c": 3}),
        );
    }

    #[test]
    fn items_of_lists_keep_what_is_not_known() {
        check(
            json!([{"name": "a", "new": 1}, {"name": "b", "new": 2}]),
            json!([{"name": "a"}, {"name": "b"}]),
            json!([{"name": "a"}, {"name": "c"}, {"name": "d"}]),
            json!([{"name": "a", "new": 1}, {"name": "c", "new": 2}, {"name": "d"}]),
        );
        check(json!([1, 2]), json!([1, 2]), json!([1]), json!([1]));
    }

    #[test]
    fn another_type_of_value_replaces() {
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
