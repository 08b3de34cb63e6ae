//! Webhook configurations and conversions that `rbuilder dev` has redirected to a developer's machine.

use anyhow::{Result, bail};
use serde_json::Value;

use super::conversions::is_converted;
use crate::cluster::{Kubectl, describe, to_list};

/// Label of webhook configurations that call a developer's machine.
pub(super) const LABEL: (&str, &str) = ("rbuilder.dev/local", "true");

const URL: &str = "/spec/conversion/webhook/clientConfig/url";

/// Fails if `rbuilder dev` runs against the cluster, and has redirected one of these objects. The API
/// server would reject a client with both a URL and a Service, after others have been applied.
pub(super) fn refuse_redirected(kubectl: &Kubectl, objects: &[Value]) -> Result<()> {
    let calls = |object: &&Value| is_configuration(object) || is_converted(object);
    let callers: Vec<Value> = objects.iter().filter(calls).cloned().collect();
    if callers.is_empty() {
        return Ok(());
    }
    let present = kubectl.read_objects(&to_list(&callers))?;
    let Some(redirected) = present.iter().find(|object| is_redirected(object)) else {
        return Ok(());
    };
    let name = redirected["metadata"]["name"].as_str().unwrap_or_default();
    let advice = match redirected["kind"].as_str() {
        Some("CustomResourceDefinition") => format!(
            "`kubectl patch crd {name} --type json --patch '[{{\"op\":\"remove\",\"path\":\"/spec/conversion\"}}]'`"
        ),
        kind => format!(
            "`kubectl delete {} {name}`",
            kind.unwrap_or_default().to_lowercase()
        ),
    };
    bail!(
        "{} calls a process on a developer's machine: `rbuilder dev` runs against this cluster; nothing was applied\n  \
         = help: end `rbuilder dev`, which restores the object; if it was killed, run {advice}",
        describe(redirected)
    )
}

fn is_configuration(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap_or_default();
    kind.ends_with("WebhookConfiguration")
}

fn is_redirected(object: &Value) -> bool {
    let (label, value) = LABEL;
    match is_configuration(object) {
        true => object["metadata"]["labels"][label] == value,
        false => is_converted(object) && object.pointer(URL).is_some(),
    }
}
