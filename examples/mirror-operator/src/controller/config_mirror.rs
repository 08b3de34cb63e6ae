// SPDX-License-Identifier: Apache-2.0

//! The ConfigMirror controller: mirrors a ConfigMap to another cluster, the edge.
//!
//! A ConfigMirror and its ConfigMap are in the manager's own cluster. The copy is in the namespace
//! of the same name at the edge and has the name of the ConfigMirror, so that a changed copy leads
//! back to it.

use std::env;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use rbuilder::{
    Action, Cluster, ClusterConfig, Controller, Ctx, ObjectRef, Result, Selection, Watch,
    conditions, rbac,
};

use crate::api::v1alpha1::ConfigMirror;

/// Keeps a ConfigMirror until its copy is deleted, because owner references do not reach other
/// clusters.
pub const FINALIZER: &str = "mirror.example.com/copy";

/// The label of copies and its value.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "mirror-operator");

/// The Secret with the kubeconfig of the edge, in the namespace of the manager.
const SECRET: &str = "edge-kubeconfig";

/// The index of ConfigMirrors by namespace and name of their ConfigMaps.
const BY_CONFIG_MAP: &str = "config-map";

/// State shared by all reconciles.
#[derive(Debug)]
pub struct State {
    /// The cluster of the copies.
    pub edge: Cluster,
}

/// Returns the configuration of the edge.
pub fn edge() -> ClusterConfig {
    let namespace = env::var("POD_NAMESPACE").unwrap_or_else(|_| "default".to_owned());
    ClusterConfig::from_secret("edge", namespace, SECRET, "kubeconfig")
}

/// Returns the controller for the manager.
pub fn controller(edge: Cluster) -> Controller<ConfigMirror, State> {
    let copies = Watch::mapped(mirror_of_copy)
        .selecting(copies())
        .in_cluster(&edge);
    Controller::new(reconcile, State { edge })
        .finalizer(FINALIZER, clean_up)
        .index(BY_CONFIG_MAP, config_map_of)
        .watches(mirrors_of)
        .watch(copies)
}

/// Copies the ConfigMap of a ConfigMirror to the edge, or deletes the copy if the ConfigMap no
/// longer exists. Runs after one of the three has changed, and when the edge is reachable again.
#[rbac(
    groups = "mirror.example.com",
    resources = "configmirrors",
    verbs = ["get", "list", "watch", "patch"]
)]
#[rbac(
    groups = "mirror.example.com",
    resources = "configmirrors/status",
    verbs = ["patch"]
)]
// The own cluster only needs the verbs for reading, and the edge needs all of them.
#[rbac(
    groups = "",
    resources = "configmaps",
    verbs = ["get", "list", "watch", "create", "patch", "delete"]
)]
#[rbac(
    groups = "",
    resources = "secrets",
    resource_names = ["edge-kubeconfig"],
    verbs = ["get"]
)]
pub async fn reconcile(mirror: Arc<ConfigMirror>, ctx: Ctx<State>) -> Result {
    let namespace = mirror.namespace().unwrap_or_default();
    let originals = ctx.cached::<ConfigMap>()?;
    let original = originals.named(&namespace, &mirror.spec.config_map);
    let (mirrored, outcome) = match &original {
        Some(original) => {
            let condition = conditions::new("Mirrored", true, "Copied");
            (condition, copy(&mirror, original, &ctx).await)
        }
        None => {
            let missing = format!("there is no ConfigMap {}", mirror.spec.config_map);
            let condition = conditions::new("Mirrored", false, "NotFound").message(missing);
            (condition, delete_copy(&mirror, &ctx).await)
        }
    };
    // The status includes failures, so that users see that the edge is unreachable.
    let mirrored = match &outcome {
        Ok(()) => mirrored,
        Err(error) => conditions::new("Mirrored", false, "Failed").message(error.to_string()),
    };
    let mut status = mirror.status.clone().unwrap_or_default();
    conditions::set(&mut status.conditions, mirrored.observed(&*mirror));
    ctx.apply_status(&*mirror, status).await?;
    outcome?;
    Ok(Action::await_change())
}

/// Deletes the copy of a ConfigMirror that is being deleted. The ConfigMirror stays while the edge
/// is unreachable.
pub async fn clean_up(mirror: Arc<ConfigMirror>, ctx: Ctx<State>) -> Result {
    delete_copy(&mirror, &ctx).await?;
    Ok(Action::await_change())
}

async fn copy(mirror: &ConfigMirror, original: &ConfigMap, ctx: &Ctx<State>) -> Result<()> {
    let edge = ctx.in_cluster(&ctx.edge);
    // Leave a ConfigMap at the edge alone if it belongs to somebody else.
    let edge = match find_copy(mirror, ctx)? {
        Some(_) => edge,
        None => edge.without_force(),
    };
    edge.apply(copy_of(mirror, original)).await?;
    Ok(())
}

async fn delete_copy(mirror: &ConfigMirror, ctx: &Ctx<State>) -> Result<()> {
    if let Some(copy) = find_copy(mirror, ctx)? {
        ctx.in_cluster(&ctx.edge).delete(&*copy).await?;
    }
    Ok(())
}

/// Returns the copy of a ConfigMirror. Fails until the cache is filled, because an empty cache
/// looks as if there were no copy.
fn find_copy(mirror: &ConfigMirror, ctx: &Ctx<State>) -> Result<Option<Arc<ConfigMap>>> {
    let cached = ctx
        .in_cluster(&ctx.edge)
        .cached_selection::<ConfigMap>(&copies())?;
    let namespace = mirror.namespace().unwrap_or_default();
    Ok(cached.named(&namespace, &mirror.name_any()))
}

/// Selects the copies among the ConfigMaps at the edge.
fn copies() -> Selection {
    let (key, value) = MANAGED_BY;
    Selection::all().labels(format!("{key}={value}"))
}

fn copy_of(mirror: &ConfigMirror, original: &ConfigMap) -> ConfigMap {
    let (key, value) = MANAGED_BY;
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(mirror.name_any()),
            namespace: mirror.namespace(),
            labels: Some([(key.to_owned(), value.to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: original.data.clone(),
        binary_data: original.binary_data.clone(),
        ..ConfigMap::default()
    }
}

/// Returns the ConfigMirror of a copy at the edge.
fn mirror_of_copy(copy: &ConfigMap, _ctx: &Ctx<State>) -> Vec<ObjectRef<ConfigMirror>> {
    let namespace = copy.namespace().unwrap_or_default();
    vec![ObjectRef::new(&copy.name_any()).within(&namespace)]
}

/// Returns the ConfigMirrors of a ConfigMap in the manager's own cluster.
fn mirrors_of(original: &ConfigMap, ctx: &Ctx<State>) -> Vec<ObjectRef<ConfigMirror>> {
    let namespace = original.namespace().unwrap_or_default();
    let place = format!("{namespace}/{}", original.name_any());
    let mirrors = ctx.cached::<ConfigMirror>();
    let found = mirrors.and_then(|mirrors| mirrors.by(BY_CONFIG_MAP, &place));
    let found = found.unwrap_or_default();
    found
        .iter()
        .map(|mirror| ObjectRef::from_obj(&**mirror))
        .collect()
}

fn config_map_of(mirror: &ConfigMirror) -> Vec<String> {
    let namespace = mirror.namespace().unwrap_or_default();
    vec![format!("{namespace}/{}", mirror.spec.config_map)]
}
