//! The `scale` subresource.

use rbuilder_judge::go;
use rbuilder_kubernetes::selector::LabelSelector;
use serde_json::{Map, Value, json};

use super::failure::{Cause, Failure};
use super::kinds::Scale;

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

// Custom kinds already store the selector as a string.
fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    // A ReplicationController only has labels.
    let is_map = selector["matchLabels"].is_null() && selector["matchExpressions"].is_null();
    let read = match is_map {
        true => LabelSelector::of_labels(selector),
        false => LabelSelector::read(selector),
    };
    read.unwrap_or_default().to_string()
}

pub(super) fn set_replicas(
    object: &Value,
    wanted: &Value,
    scale: &Scale,
    is_custom: bool,
) -> Result<Value, Failure> {
    let replicas = wanted["spec"]
        .get("replicas")
        .cloned()
        .unwrap_or_else(|| 0.into());
    let is_number = replicas
        .as_i64()
        .is_some_and(|count| i32::try_from(count).is_ok());
    if !is_number {
        let message = format!(
            "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal {} into Go struct field \
             ScaleSpec.spec.replicas of type int32",
            go::json(&replicas)
        );
        return Err(Failure::bad_request(message));
    }
    // For custom resources, validation rejects negative numbers later, along with all other
    // violations.
    if replicas.as_i64().is_some_and(|count| count < 0) && !is_custom {
        let cause = Cause::invalid(
            "spec.replicas",
            format!("Invalid value: {replicas}: must be greater than or equal to 0"),
        );
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        return Err(Failure::invalid_scale(name, cause));
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
