//! Strategic merge patches, as far as needed for a Deployment.

use serde_json::Value;

const KEYS: &[(&str, &str)] = &[
    ("containers", "name"),
    ("initContainers", "name"),
    ("env", "name"),
    ("volumes", "name"),
    ("imagePullSecrets", "name"),
    ("ports", "containerPort"),
    ("volumeMounts", "mountPath"),
    ("topologySpreadConstraints", "topologyKey"),
];

/// The merge key of a list, or `None` if a patch replaces the whole list.
pub(crate) fn merge_key(field: &str) -> Option<&'static str> {
    KEYS.iter().find(|(name, _)| *name == field).map(|(_, key)| *key)
}

/// Merges a patch into an object.
pub fn merge(base: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *base = patch.clone();
        return;
    };
    if !base.is_object()
        || patch
            .get("$patch")
            .is_some_and(|directive| directive == "replace")
    {
        *base = Value::Object(serde_json::Map::new());
    }
    let Some(map) = base.as_object_mut() else { return };
    for (key, value) in patch.iter().filter(|(key, _)| *key != "$patch") {
        match (value, map.get_mut(key), merge_key(key)) {
            (Value::Null, ..) => {
                map.remove(key);
            }
            (Value::Array(items), Some(Value::Array(known)), Some(merge_key)) => {
                merge_list(known, items, merge_key);
            }
            (Value::Object(_), Some(known), _) => merge(known, value),
            // Merge even into nothing: fields that the patch removes must not end up in the new
            // object.
            (Value::Object(_), None, _) => {
                let mut added = Value::Null;
                merge(&mut added, value);
                map.insert(key.clone(), added);
            }
            (value, ..) => {
                map.insert(key.clone(), value.clone());
            }
        }
    }
}

fn merge_list(known: &mut Vec<Value>, items: &[Value], key: &str) {
    for item in items {
        let at = known.iter().position(|known| known[key] == item[key]);
        let is_removal = item["$patch"] == "delete";
        match at {
            Some(at) if is_removal => {
                known.remove(at);
            }
            Some(at) => merge(&mut known[at], item),
            None if is_removal => {}
            None => known.push(item.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_merge_by_their_keys() {
        let mut base = json!({ "containers": [
            { "name": "manager", "env": [{ "name": "A", "value": "1" }, { "name": "B" }], "args": ["x"] },
        ], "hostNetwork": true });
        let patch = json!({ "containers": [
            { "name": "manager", "args": ["y"], "env": [
                { "name": "A", "value": "2" }, { "name": "B", "$patch": "delete" }, { "name": "C" },
                { "name": "D", "$patch": "delete" },
            ] },
            { "name": "proxy" },
        ], "hostNetwork": null, "strategy": { "type": "Recreate", "rollingUpdate": null } });
        merge(&mut base, &patch);
        let expected = json!({ "containers": [
            { "name": "manager", "env": [{ "name": "A", "value": "2" }, { "name": "C" }], "args": ["y"] },
            { "name": "proxy" },
        ], "strategy": { "type": "Recreate" } });
        assert_eq!(base, expected);
    }
}
