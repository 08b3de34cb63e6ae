//! Other deployments of the manager, which use the same CRDs.

use anyhow::Result;
use serde_json::Value;

use super::{describe, qualified_name};
use crate::cluster::{Kubectl, MANAGER_LABEL};

/// Label with the name of the project, on the Deployment of the manager.
const NAME_LABEL: &str = "app.kubernetes.io/name";

/// Returns the Deployments of the same manager that are not among the rendered objects, for a message.
///
/// # Errors
/// Fails if the Deployments of the cluster cannot be listed: CRDs that others use must not be deleted.
pub(super) fn find(kubectl: &Kubectl, rendered: &[Value]) -> Result<Vec<String>> {
    let (label, value) = MANAGER_LABEL;
    let is_manager =
        |object: &&Value| object["kind"] == "Deployment" && object["metadata"]["labels"][label] == value;
    let managers: Vec<&Value> = rendered.iter().filter(is_manager).collect();
    let mut sharers = Vec::new();
    for manager in &managers {
        let Some(name) = manager["metadata"]["labels"][NAME_LABEL].as_str() else {
            continue;
        };
        let selector = format!("{label}={value},{NAME_LABEL}={name}");
        let found = kubectl.list(&["deployments.apps", "--all-namespaces", "--selector", &selector])?;
        let is_ours = |found: &Value| {
            managers
                .iter()
                .any(|ours| qualified_name(ours) == qualified_name(found))
        };
        sharers.extend(found.iter().filter(|found| !is_ours(found)).map(describe));
    }
    sharers.sort();
    sharers.dedup();
    Ok(sharers)
}
