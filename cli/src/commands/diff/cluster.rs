//! The CRDs and objects in a cluster.

use anyhow::{Result, anyhow};
use rbuilder_compatibility::{StoredJudge, StoredVerdict};
use rbuilder_kubernetes::crd::Crd;
use rbuilder_kubernetes::gvk;
use serde_json::Value;

use crate::cluster::{Kubectl, describe, to_list};

pub(super) struct Stored {
    pub(super) judged: usize,
    /// Objects that are rejected, blocked or pruned.
    pub(super) affected: Vec<(String, StoredVerdict)>,
}

pub(super) fn read_definitions(kubectl: &Kubectl, new: &[Value]) -> Result<Vec<Value>> {
    match new.is_empty() {
        true => Ok(Vec::new()),
        false => kubectl.read_objects(&to_list(new)),
    }
}

/// Validates the cluster's objects against the new CRDs, in each version that both serve.
pub(super) fn judge_objects(kubectl: &Kubectl, old: &[Value], new: &[Value]) -> Result<Stored> {
    let mut stored = Stored {
        judged: 0,
        affected: Vec::new(),
    };
    for crd in new {
        let name = &crd["metadata"]["name"];
        let Some(installed) = old
            .iter()
            .find(|installed| installed["metadata"]["name"] == *name)
        else {
            continue;
        };
        let judge = StoredJudge::new(crd).map_err(|reason| anyhow!("{}: {reason}", describe(crd)))?;
        for resource in resources(installed) {
            for object in kubectl.list(&[&resource, "--all-namespaces"])? {
                let Some(verdict) = judge.judge(&object) else {
                    break;
                };
                stored.judged += 1;
                if !verdict.is_fine() {
                    let version = object["apiVersion"].as_str().unwrap_or_default();
                    stored
                        .affected
                        .push((format!("{} ({version})", describe(&object)), verdict));
                }
            }
        }
    }
    Ok(stored)
}

fn resources(crd: &Value) -> Vec<String> {
    let crd = Crd::of(crd);
    let served = crd
        .served()
        .map(|version| gvk::api_version(crd.group(), version.name));
    served
        .map(|api_version| gvk::argument(crd.plural(), &api_version))
        .collect()
}
