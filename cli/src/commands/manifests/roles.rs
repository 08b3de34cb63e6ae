//! Roles in generated manifests, and their namespaces after kustomize.

use std::collections::BTreeSet;

use anyhow::Result;
use rbuilder_yaml::{is_yaml, parse_documents};
use serde_json::Value;

use crate::chart::config::{KEPT, read_kept_namespaces};
use crate::overlay::{DEPLOYMENT, Kustomization};
use crate::plan::Plan;
use crate::tree::Tree;

pub(super) const PLACEHOLDER: &str = "system";

/// Entry for the transformers in [`DEPLOYMENT`].
pub(in crate::commands) const ENTRY: &str = "../rbac/namespaces";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Role {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) namespace: Option<String>,
}

/// Reads the roles in a manifest. Empty if it can't be parsed.
pub(super) fn read_roles(text: &str) -> BTreeSet<Role> {
    let documents = parse_documents(text).unwrap_or_default();
    documents.iter().filter_map(to_role).collect()
}

fn to_role(document: &Value) -> Option<Role> {
    let kind = document["kind"].as_str()?;
    let metadata = &document["metadata"];
    matches!(kind, "Role" | "ClusterRole").then_some(Role {
        kind: kind.to_owned(),
        name: metadata["name"].as_str()?.to_owned(),
        namespace: metadata["namespace"].as_str().map(str::to_owned),
    })
}

pub(super) fn is_config(path: &str) -> bool {
    path.starts_with("config/") && is_yaml(path)
}

pub(super) fn find_namespace(text: &str) -> Option<String> {
    let kustomization = Kustomization::parse(DEPLOYMENT, text).ok()?;
    kustomization.namespace().map(str::to_owned)
}

/// Whether a namespace is preserved, i.e. config/default includes the transformers and they cover
/// the namespace.
pub(super) fn is_kept(plan: &Plan, tree: &Tree, namespace: &str) -> Result<bool> {
    let deployment = plan.read(tree, DEPLOYMENT)?.unwrap_or_default();
    let kustomization = Kustomization::parse(DEPLOYMENT, &deployment).unwrap_or_default();
    let is_listed = kustomization.lists("transformers", ENTRY);
    let transformers = plan.read(tree, KEPT)?.unwrap_or_default();
    Ok(is_listed && read_kept_namespaces(&transformers).contains(namespace))
}
