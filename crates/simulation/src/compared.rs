//! Compares an object on a real API server with its counterpart in the simulation.

use jiff::Timestamp;
use serde_json::Value;

use crate::addresses::{ADDRESS, NODE_PORT};
use crate::world::Mask;

/// Lists the differences between an object on a real server and the `expected` one.
///
/// Only fields of `expected` are compared; extra fields in `found` are fine, since a real server
/// sets defaults that the simulated one doesn't know about.
pub(crate) fn differences(name: &str, expected: &Value, found: &Value, mask: &Mask) -> Vec<String> {
    let mut all = Vec::new();
    compare(name, "", expected, found, mask, &mut all);
    all
}

fn compare(name: &str, path: &str, expected: &Value, found: &Value, mask: &Mask, all: &mut Vec<String>) {
    if mask.contains(&format!("{name} {path}")) || is_same(expected, found) {
        return;
    }
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for (field, expected) in expected {
                let found = found.get(field).unwrap_or(&Value::Null);
                compare(name, &format!("{path}.{field}"), expected, found, mask, all);
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
                compare(name, &format!("{path}[{index}]"), expected, found, mask, all);
            }
        }
        _ => all.push(format!(
            "{name}: {path} is {found}, and {expected} in the simulation"
        )),
    }
}

fn is_same(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        // A real server may omit empty objects.
        (Value::Object(fields), Value::Null) => fields.is_empty(),
        (Value::Array(items), Value::Null) => items.is_empty(),
        // Snapshots replace run-dependent values with placeholders.
        (Value::String(text), Value::String(found)) if text == "<time>" => found.parse::<Timestamp>().is_ok(),
        (Value::String(text), Value::Number(_)) => text == "<current>" || text == NODE_PORT,
        (Value::String(text), Value::String(_)) if text.contains("<uid>") || text.contains(ADDRESS) => true,
        _ => expected == found,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_fields_of_the_simulation_are_compared() {
        let expected = json!({
            "metadata": { "labels": { "app": "a" }, "ownerReferences": [{ "uid": "<uid>" }] },
            "spec": { "replicas": 2, "ports": [{ "port": 80 }] },
            "status": { "at": "<time>", "observedGeneration": "<current>" },
        });
        let found = json!({
            "metadata": { "labels": { "app": "a" }, "ownerReferences": [{ "uid": "7f" }] },
            "spec": { "replicas": 3, "ports": [{ "port": 80, "protocol": "TCP" }], "paused": false },
            "status": { "at": "2026-01-01T00:00:00Z", "observedGeneration": 4 },
        });
        let name = "deployments.apps default/a";
        let message = "deployments.apps default/a: .spec.replicas is 3, and 2 in the simulation";
        assert_eq!(differences(name, &expected, &found, &Mask::new()), [message]);
        let mask = Mask::from(["deployments.apps default/a .spec.replicas".to_owned()]);
        assert!(differences(name, &expected, &found, &mask).is_empty());
    }
}
