//! Other deployments of the manager. They share its CRDs and, with the same name prefix, its
//! cluster-scoped objects.

use anyhow::Result;
use rbuilder_templates::objects::{MANAGER_LABEL, NAME_LABEL};
use serde_json::Value;

use crate::cluster::{Kubectl, describe, qualified_name, to_list};

#[derive(Debug, Default)]
pub(super) struct Sharers {
    deployments: Vec<Value>,
    ours: Vec<Value>,
}

impl Sharers {
    pub(super) fn find(kubectl: &Kubectl, rendered: &[Value]) -> Result<Sharers> {
        let is_manager = |object: &&Value| {
            object["kind"] == "Deployment" && object["metadata"]["labels"][MANAGER_LABEL].is_string()
        };
        let ours: Vec<Value> = rendered.iter().filter(is_manager).cloned().collect();
        let mut deployments: Vec<Value> = Vec::new();
        for manager in &ours {
            let label = |key: &str| manager["metadata"]["labels"][key].as_str();
            let (Some(value), Some(name)) = (label(MANAGER_LABEL), label(NAME_LABEL)) else {
                continue;
            };
            let selector = format!("{MANAGER_LABEL}={value},{NAME_LABEL}={name}");
            // Errors must be fatal here, because shared objects must not be deleted.
            let found = kubectl.list(&["deployments.apps", "--all-namespaces", "--selector", &selector])?;
            let is_known = |found: &Value| {
                let mut known = ours.iter().chain(&deployments);
                known.any(|known| qualified_name(known) == qualified_name(found))
            };
            let others: Vec<Value> = found.into_iter().filter(|found| !is_known(found)).collect();
            deployments.extend(others);
        }
        Ok(Sharers { deployments, ours })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.deployments.is_empty()
    }

    pub(super) fn describe(&self) -> String {
        let names: Vec<String> = self.deployments.iter().map(describe).collect();
        names.join(" and ")
    }

    /// Splits objects into those to delete and those used by other deployments.
    pub(super) fn keep_shared(
        &self,
        kubectl: &Kubectl,
        objects: Vec<Value>,
    ) -> Result<(Vec<Value>, Vec<Value>)> {
        let name = |object: &Value| object["metadata"]["name"].clone();
        let has_our_name = |other: &Value| self.ours.iter().any(|ours| name(ours) == name(other));
        // A deployment of the same name in another namespace has the same prefix, and so shares all
        // objects outside of both namespaces: cluster-scoped objects, and roles in other
        // namespaces.
        if !self.deployments.iter().any(has_our_name) {
            return Ok((objects, Vec::new()));
        }
        let namespaces = self
            .ours
            .iter()
            .filter_map(|ours| ours["metadata"]["namespace"].as_str());
        let namespaces: Vec<&str> = namespaces.collect();
        let is_in_ours = |object: &Value| {
            let namespace = object["metadata"]["namespace"].as_str();
            namespace.is_some_and(|namespace| namespaces.contains(&namespace))
        };
        let (namespaced, elsewhere): (Vec<_>, Vec<_>) = objects.into_iter().partition(is_in_ours);
        let present = kubectl.read_objects(&to_list(&elsewhere))?;
        // Shared objects stay, unless the one in the cluster refers to our namespace. For example,
        // a webhook configuration without its Service would reject every request.
        let is_ours = |object: &Value| {
            let is_it = |found: &&Value| {
                found["kind"] == object["kind"] && qualified_name(found) == qualified_name(object)
            };
            let found = present.iter().find(is_it);
            found.is_some_and(|found| namespaces.iter().any(|namespace| refers_to(found, namespace)))
        };
        let (ours, shared): (Vec<_>, Vec<_>) = elsewhere.into_iter().partition(is_ours);
        Ok(([ours, namespaced].concat(), shared))
    }
}

/// Whether any nested `namespace` field, e.g. of a Service reference, contains the given namespace.
fn refers_to(value: &Value, namespace: &str) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| match value {
            Value::String(text) => key == "namespace" && text == namespace,
            value => refers_to(value, namespace),
        }),
        Value::Array(items) => items.iter().any(|item| refers_to(item, namespace)),
        _ => false,
    }
}
