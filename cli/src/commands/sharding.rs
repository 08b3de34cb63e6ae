//! The deployment feature `sharding`: what its component requires of the manager, and how to
//! disable it.

use anyhow::{Result, bail};
use serde_json::Value;

use super::Outcome;
use crate::plan::Plan;
use crate::tree::Tree;

/// The component, as listed in `config/default`.
pub(super) const SHARDING: &str = "../sharding";
const COMPONENT: &str = "config/sharding/kustomization.yaml";
const MANAGER: &str = "config/manager/manager.yaml";
/// Forms of the argument that the component disables.
const LEADER_ELECT: [&str; 3] = ["--leader-elect", "--leader-elect=true", "--leader-elect=false"];

/// Checks that the manager has the argument that the component replaces. Otherwise kustomize would
/// fail.
pub(super) fn check_arguments(plan: &Plan, tree: &Tree) -> Result<()> {
    let objects = |path| -> Result<Vec<Value>> {
        let text = plan.read(tree, path)?.unwrap_or_default();
        // Other commands report files that can't be parsed.
        Ok(rbuilder_yaml::parse_documents(&text).unwrap_or_default())
    };
    let replaces = objects(COMPONENT)?
        .iter()
        .any(|component| component["replacements"].is_array());
    let manager = objects(MANAGER)?.iter().find_map(find_arguments);
    let is_argument = |argument: &Value| LEADER_ELECT.iter().any(|known| argument == known);
    match manager {
        Some(arguments) if replaces && !arguments.iter().any(is_argument) => bail!(
            "expected `{}` in `args` of the container `manager` in {MANAGER}, which {COMPONENT} turns off: add the argument, or remove `replacements` from that file",
            LEADER_ELECT[0]
        ),
        _ => Ok(()),
    }
}

fn find_arguments(object: &Value) -> Option<Vec<Value>> {
    if object["kind"] != "Deployment" {
        return None;
    }
    let containers = object["spec"]["template"]["spec"]["containers"].as_array()?;
    let manager = containers
        .iter()
        .find(|container| container["name"] == "manager")?;
    Some(manager["args"].as_array().cloned().unwrap_or_default())
}

/// Warns about deployed replicas with shards, which an older version runs concurrently with a leader.
pub(super) fn warn_replicas(project_name: &str, outcome: &mut Outcome) {
    outcome.warn(
        "replicas with shards of an older version of the library know nothing of a leader, and both would work on the same objects",
        &format!(
            "before the next `make deploy`, run `kubectl --namespace {project_name}-system scale deployment/{project_name}-controller-manager --replicas=0`, and wait until the Pods are gone"
        ),
    );
}
