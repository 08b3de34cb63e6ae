// SPDX-License-Identifier: Apache-2.0

//! The controller of Memcached: keeps one Deployment for each object, and announces the end of an object.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Error, Result, conditions, rbac};

use super::deployment::{desired_deployment, ready_replicas};
use crate::api::v1alpha1::{Memcached, MemcachedStatus};

/// Keeps a Memcached until [`cleanup`] has succeeded.
pub const FINALIZER: &str = "cache.example.com/finalizer";

/// State shared by all reconciles.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The image that every instance runs.
    pub image: Option<String>,
}

/// Returns the controller that the manager runs.
pub fn controller(image: Option<String>) -> Controller<Memcached, State> {
    Controller::new(reconcile, State { image })
        .finalizer(FINALIZER, cleanup)
        .owns::<Deployment>()
}

/// Brings the Deployment of a Memcached to its desired state and reports the observed state, errors included.
#[rbac(
    groups = "cache.example.com",
    resources = "memcacheds",
    verbs = ["get", "list", "watch", "patch"]
)]
#[rbac(groups = "cache.example.com", resources = "memcacheds/status", verbs = ["get", "patch"])]
#[rbac(groups = "cache.example.com", resources = "memcacheds/finalizers", verbs = ["update"])]
#[rbac(
    groups = "apps",
    resources = "deployments",
    verbs = ["get", "list", "watch", "create", "patch"]
)]
pub async fn reconcile(memcached: Arc<Memcached>, ctx: Ctx<State>) -> Result {
    let applied = apply_deployment(&memcached, &ctx).await;
    let status = observed_status(&memcached, &applied);
    ctx.apply_status(&*memcached, status).await?;
    applied?;
    Ok(Action::await_change())
}

/// Announces the end of a Memcached. The finalizer is removed after success; the Deployment goes with its owner.
pub async fn cleanup(memcached: Arc<Memcached>, ctx: Ctx<State>) -> Result {
    let name = memcached.name_any();
    let namespace = memcached.namespace().unwrap_or_default();
    let note = format!("Memcached {name} is being deleted from the namespace {namespace}");
    ctx.warning(&*memcached, "Deleting", "Delete", note);
    Ok(Action::await_change())
}

async fn apply_deployment(memcached: &Memcached, ctx: &Ctx<State>) -> Result<Deployment> {
    // A retry would not help: the image is an argument of this process.
    let no_image = || Error::terminal("the manager has no image to run: set MEMCACHED_IMAGE");
    let image = ctx.image.as_deref().ok_or_else(no_image)?;
    ctx.apply_owned(memcached, desired_deployment(memcached, image))
        .await
}

/// Returns the status of a Memcached: it is available once all of its replicas are ready.
fn observed_status(memcached: &Memcached, applied: &Result<Deployment>) -> MemcachedStatus {
    let size = memcached.spec.size;
    let available = match applied.as_ref().map(ready_replicas) {
        Ok(ready) => conditions::new("Available", ready >= size, "Reconciled")
            .message(format!("{ready} of {size} replicas are ready")),
        Err(error) => conditions::new("Available", false, "ApplyFailed").message(error.to_string()),
    };
    let mut status = memcached.status.clone().unwrap_or_default();
    conditions::set(&mut status.conditions, available.observed(memcached));
    status
}
