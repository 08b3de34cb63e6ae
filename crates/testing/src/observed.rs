//! Waits until a controller has observed an object.

use std::time::Duration;

use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::eventually;

// Generous enough for a reconcile and a status write on a busy CI machine.
const LIMIT: Duration = Duration::from_secs(20);

/// Waits until an object's status refers to its current generation, and returns the object. Checks
/// `status.observedGeneration` or, if it's absent, `observedGeneration` in all conditions, of which
/// there must be at least one.
///
/// The conditions' own statuses are ignored, so the object needn't be available yet.
///
/// # Panics
///
/// Panics after 20 seconds, with the generation and the status found. Always times out if the
/// status has neither field; use [`eventually`] to wait for other fields instead.
#[track_caller]
pub fn until_observed<K>(objects: &Api<K>, name: &str) -> impl Future<Output = K>
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let (objects, name) = (objects.clone(), name.to_owned());
    eventually(LIMIT, move || {
        let (objects, name) = (objects.clone(), name.clone());
        async move {
            let object = objects.get(&name).await.map_err(|error| error.to_string())?;
            let value = serde_json::to_value(&object).map_err(|error| error.to_string())?;
            check_observed(&value).map(|()| object)
        }
    })
}

fn check_observed(object: &Value) -> Result<(), String> {
    let (generation, status) = (object["metadata"]["generation"].as_i64(), &object["status"]);
    let is_current = |observed: &Value| {
        observed
            // The controller may have observed a newer generation than that of the object read
            // above.
            .as_i64()
            .is_some_and(|observed| Some(observed) >= generation)
    };
    let conditions = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let is_observed = match &status["observedGeneration"] {
        Value::Null => {
            let mut observed = conditions
                .iter()
                .map(|condition| &condition["observedGeneration"]);
            !conditions.is_empty() && observed.all(is_current)
        }
        observed => is_current(observed),
    };
    if is_observed {
        return Ok(());
    }
    let generation = generation.unwrap_or_default();
    if conditions.is_empty() {
        return Err(describe_missing(generation, status));
    }
    let lines = conditions.iter().map(|condition| {
        let part = |key: &str| condition[key].as_str().unwrap_or_default();
        format!(
            "\n  {}={} of generation {}: {}: {}",
            part("type"),
            part("status"),
            condition["observedGeneration"],
            part("reason"),
            part("message")
        )
    });
    let lines: String = lines.collect();
    Err(format!("generation {generation} is not observed by:{lines}"))
}

fn describe_missing(generation: i64, status: &Value) -> String {
    let (found, help) = match (status, &status["observedGeneration"]) {
        (Value::Null, _) => (
            "the object has no status".to_owned(),
            "the controller has not written one: its log names errors of `reconcile`",
        ),
        (_, Value::Null) => (
            format!("the status has neither `observedGeneration` nor `conditions`: {status}"),
            "set one of them in `reconcile`, or wait for your own fields with `rbuilder::testing::eventually` in place of \
             `until_observed`",
        ),
        (_, observed) => (
            format!("`status.observedGeneration` is {observed}"),
            "the controller has not written the status for this generation: its log names errors of `reconcile`",
        ),
    };
    format!("generation {generation} is not observed: {found}\n  = help: {help}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn status_must_refer_to_current_generation() {
        let condition = |generation: Value| json!({ "type": "Available", "status": "False", "reason": "Starting", "message": "0 of 3", "observedGeneration": generation });
        for (status, expected) in [
            (
                json!(null),
                Err(
                    "generation 2 is not observed: the object has no status\n  = help: the controller has not written one",
                ),
            ),
            (
                json!({ "nodes": ["a"] }),
                Err(
                    "the status has neither `observedGeneration` nor `conditions`: {\"nodes\":[\"a\"]}\n  = help: set one of them in `reconcile`, or wait for your own fields with `rbuilder::testing::eventually`",
                ),
            ),
            (
                json!({ "observedGeneration": 1, "nodes": [] }),
                Err("generation 2 is not observed: `status.observedGeneration` is 1\n"),
            ),
            (json!({ "observedGeneration": 2 }), Ok(())),
            (json!({ "conditions": [condition(json!(2))] }), Ok(())),
            (
                json!({ "conditions": [condition(json!(2)), condition(json!(1))] }),
                Err("\n  Available=False of generation 1: Starting: 0 of 3"),
            ),
            (
                json!({ "conditions": [condition(json!(null))] }),
                Err("generation 2 is not observed by:\n  Available=False of generation null"),
            ),
            (
                json!({ "observedGeneration": 1, "conditions": [condition(json!(2))] }),
                Err("generation 2 is not observed"),
            ),
        ] {
            let found = check_observed(&json!({ "metadata": { "generation": 2 }, "status": status }));
            match expected {
                Ok(()) => assert_eq!(found, Ok(()), "{status}"),
                Err(part) => assert!(found.unwrap_err().contains(part), "{status}"),
            }
        }
    }
}
