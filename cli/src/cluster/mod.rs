//! The cluster that commands talk to, through kubectl.

mod image;
mod kubectl;
mod process;

pub(crate) use image::{MANAGER_LABEL, set_image};
pub(crate) use kubectl::Kubectl;
pub(crate) use process::{Interrupt, run_in_foreground};
#[cfg(feature = "control-plane")]
pub(crate) use process::{POLL_INTERVAL, Reach, terminate, wait_for};

use anyhow::Result;
use serde_json::Value;

use crate::yaml_stream;

/// Parses the documents that kustomize rendered.
///
/// # Errors
/// Fails if the text is not YAML.
pub(crate) fn parse_documents(text: &str) -> Result<Vec<Value>> {
    yaml_stream::parse_documents(text)
        .map_err(|error| yaml_stream::describe_failure("the output of `kubectl kustomize`", text, &error))
}

/// Returns the objects as a single List document for kubectl.
pub(crate) fn to_list(objects: &[Value]) -> String {
    serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string()
}
