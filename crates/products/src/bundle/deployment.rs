//! The manager's Deployment as created by the Operator Lifecycle Manager.

use rbuilder_project::overlay;
use serde_json::{Value, json};

use super::BundleOptions;
use crate::chart::config::{Condition, Object};
use crate::chart::references::References;

const WATCH_NAMESPACE: &str = "WATCH_NAMESPACE";

pub(super) fn resolve_manager(
    object: &Object,
    references: &References,
    holds: &dyn Fn(&Condition) -> bool,
    options: &BundleOptions,
) -> Value {
    let mut value = object.value.clone();
    for (conditions, patch) in &object.patches {
        if conditions.iter().all(holds) && patch["kind"] == value["kind"] {
            overlay::merge(&mut value, patch);
        }
    }
    remove_certificate(&mut value["spec"]["template"]["spec"], references);
    if let Some(container) = find_container(&mut value) {
        if let Some(image) = &options.image {
            container["image"] = json!(image);
        }
        if options.is_ours {
            watch_targets(container);
        }
    }
    let mut value = references.replace("Deployment", &value).into_value();
    value["metadata"]["name"] = json!(references.name(object.name()));
    value
}

/// The container named `manager`, or else the first one.
pub(crate) fn find_container(deployment: &mut Value) -> Option<&mut Value> {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array_mut()?;
    let named = containers
        .iter()
        .position(|container| container["name"] == "manager");
    containers.get_mut(named.unwrap_or(0))
}

fn remove_certificate(pod: &mut Value, references: &References) {
    let secrets: Vec<&str> = references.secrets().collect();
    // The lifecycle manager mounts its own certificate at the same path.
    let is_certificate = |volume: &Value| {
        volume["secret"]["secretName"]
            .as_str()
            .is_some_and(|name| secrets.contains(&name))
    };
    let mut names = Vec::new();
    retain(pod, "volumes", |volume| {
        if is_certificate(volume) {
            names.push(volume["name"].clone());
        }
        !is_certificate(volume)
    });
    for container in pod["containers"].as_array_mut().into_iter().flatten() {
        retain(container, "volumeMounts", |mount| !names.contains(&mount["name"]));
    }
}

/// Keeps the items accepted by `keep`, and removes a list that becomes empty.
fn retain(object: &mut Value, key: &str, keep: impl FnMut(&Value) -> bool) {
    let Some(map) = object.as_object_mut() else { return };
    if let Some(Value::Array(items)) = map.get_mut(key) {
        items.retain(keep);
        if items.is_empty() {
            map.remove(key);
        }
    }
}

fn watch_targets(container: &mut Value) {
    retain(container, "env", |variable| variable["name"] != WATCH_NAMESPACE);
    // With an empty annotation, the manager watches all namespaces.
    let targets = json!({ "fieldRef": { "fieldPath": "metadata.annotations['olm.targetNamespaces']" } });
    let variable = json!({ "name": WATCH_NAMESPACE, "valueFrom": targets });
    match container["env"].as_array_mut() {
        Some(variables) => variables.push(variable),
        None => container["env"] = json!([variable]),
    }
}
