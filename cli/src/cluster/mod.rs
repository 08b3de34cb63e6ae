//! The cluster that commands talk to, through kubectl.

mod apply;
mod conflict;
mod image;
mod kubectl;
mod process;
mod proxy;
mod strategy;

pub(crate) use apply::{APPLY, apply};
pub(crate) use image::set_image;
pub(crate) use kubectl::{ClusterChoice, Kubectl};
pub(crate) use process::{Interrupt, run_in_foreground};
#[cfg(feature = "control-plane")]
pub(crate) use process::{POLL_INTERVAL, Reach, terminate, wait_for};
pub(crate) use proxy::{Answer, Body, Proxy, Refusal, encode};

pub(crate) use strategy::allow_recreate;

use anyhow::Result;
use serde_json::Value;

pub(crate) fn parse_documents(text: &str) -> Result<Vec<Value>> {
    rbuilder_yaml::parse_documents(text)
        .map_err(|error| rbuilder_yaml::describe_failure("the output of `kubectl kustomize`", text, &error))
}

pub(crate) fn to_list(objects: &[Value]) -> String {
    serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string()
}

/// Name of an object, or `namespace/name` if it is namespaced.
pub(crate) fn qualified_name(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

pub(crate) fn describe(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or("object");
    format!("{kind} {}", qualified_name(object))
}
