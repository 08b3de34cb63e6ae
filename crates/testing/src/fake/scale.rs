//! The `scale` subresource.

use serde_json::{Map, Value, json};

use super::failure::{Cause, Failure};
use super::kinds::Scale;

/// Validates the number of replicas, if it is set.
pub(super) fn check_replicas(object: &Value, scale: &Scale) -> Option<Cause> {
    let field = scale.replicas.replace('/', ".");
    let found = object.pointer(&scale.replicas)?;
    let message = match found {
        Value::Number(count) if count.as_i64().is_some_and(|count| count < 0) => {
            format!("Invalid value: {count}: should be a non-negative integer")
        }
        Value::String(text) => {
            format!("Invalid value: 0: {field} accessor error: {text} is of the type string, expected int64")
        }
        _ => return None,
    };
    Some(Cause::invalid(field, message))
}

/// Returns the `Scale` for an object.
pub(super) fn to_scale(object: &Value, scale: &Scale) -> Value {
    let metadata = &object["metadata"];
    let mut kept = Map::new();
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata.get(name) {
            kept.insert(name.to_owned(), value.clone());
        }
    }
    let count = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_else(|| 0.into());
    let mut shown = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept,
        "spec": { "replicas": count(&scale.replicas) }, "status": { "replicas": count(&scale.observed) },
    });
    let selector = scale
        .selector
        .as_deref()
        .and_then(|pointer| object.pointer(pointer));
    if let Some(selector) = selector {
        shown["status"]["selector"] = selector_text(selector).into();
    }
    shown
}

/// Returns a selector as a string. Custom kinds already store it as one.
fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    let labels = selector.get("matchLabels").unwrap_or(selector).as_object();
    let terms = labels
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)));
    terms.collect::<Vec<_>>().join(",")
}

/// Returns the object with the number of replicas from a `Scale`.
pub(super) fn set_replicas(object: &Value, wanted: &Value, scale: &Scale) -> Result<Value, Failure> {
    let replicas = wanted["spec"]
        .get("replicas")
        .cloned()
        .unwrap_or_else(|| 0.into());
    if replicas.as_i64().is_none_or(|count| count < 0) {
        let message = format!("Scale.autoscaling is invalid: spec.replicas: Invalid value: {replicas}");
        return Err(Failure::of_code(422, message));
    }
    let mut object = object.clone();
    let mut place = &mut object;
    for step in scale.replicas.split('/').filter(|step| !step.is_empty()) {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[step];
    }
    *place = replicas;
    if let Some(version) = wanted["metadata"].get("resourceVersion") {
        object["metadata"]["resourceVersion"] = version.clone();
    }
    Ok(object)
}
