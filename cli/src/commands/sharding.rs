//! The deployment feature `sharding`: what its component requires of the manager, and how to
//! disable it.

use anyhow::{Result, bail};
use serde_json::Value;

use super::Outcome;
use crate::plan::Plan;
use crate::project::{Project, find_container};
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
    let project = plan.read_project(tree).ok().flatten();
    let names = project
        .map(|project| project.known.rbuilder.names)
        .unwrap_or_default();
    let container = names.container();
    let manager = objects(MANAGER)?
        .iter()
        .find_map(|object| find_arguments(object, container));
    let is_argument = |argument: &Value| LEADER_ELECT.iter().any(|known| argument == known);
    match manager {
        Some(arguments) if replaces && !arguments.iter().any(is_argument) => bail!(
            "expected `{}` in `args` of the container `{container}` in {MANAGER}, which {COMPONENT} turns off: add the argument, or remove `replacements` from that file",
            LEADER_ELECT[0]
        ),
        _ => Ok(()),
    }
}

fn find_arguments(object: &Value, container: &str) -> Option<Vec<Value>> {
    if object["kind"] != "Deployment" {
        return None;
    }
    let manager = find_container(object, container)?;
    Some(manager["args"].as_array().cloned().unwrap_or_default())
}

/// Warns about deployed replicas with shards, which an older version runs concurrently with a leader.
pub(super) fn warn_replicas(project: &Project, outcome: &mut Outcome) {
    outcome.warn(
        "replicas with shards of an older version of the library know nothing of a leader, and both would work on the same objects",
        &format!(
            "before the next `make deploy`, run `kubectl --namespace {} scale deployment/{} --replicas=0`, and wait until the Pods are gone",
            project.namespace(),
            project.deployed_name()
        ),
    );
}
