// SPDX-License-Identifier: Apache-2.0

//! Keeps one Deployment per Memcached, and says what it does about one that is being deleted.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use rbuilder::conditions::{self, Builder, Status};
use rbuilder::{Action, Controller, Ctx, Error, Result, Watch, rbac};

use super::deployment;
use crate::api::v1alpha1::{Memcached, MemcachedStatus};

/// Holds a Memcached until [`cleanup`] is done.
pub const FINALIZER: &str = "cache.example.com/finalizer";

/// The condition that says whether the instances are there.
const AVAILABLE: &str = "Available";

/// The condition that says that the instances are about to go.
const DEGRADED: &str = "Degraded";

/// What the reconciler needs beside the object.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The image that every instance runs.
    pub image: Option<String>,
}

/// The controller: which objects wake the reconciler, and what keeps them from going.
pub fn controller(image: Option<String>) -> Controller<Memcached, State> {
    Controller::new(reconcile, State { image })
        .finalizer(FINALIZER, cleanup)
        .watch(Watch::<Deployment>::owned())
}

/// Brings the cluster closer to what one Memcached asks for. The finalizer is there already.
///
/// It runs when the object or its Deployment changes, and again after an error, later each time.
#[rbac(
    groups = "cache.example.com",
    resources = "memcacheds",
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
)]
#[rbac(
    groups = "cache.example.com",
    resources = "memcacheds/status",
    verbs = ["get", "update", "patch"]
)]
#[rbac(
    groups = "cache.example.com",
    resources = "memcacheds/finalizers",
    verbs = ["update"]
)]
#[rbac(
    groups = "apps",
    resources = "deployments",
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
)]
pub async fn reconcile(memcached: Arc<Memcached>, ctx: Ctx<State>) -> Result {
    let name = memcached.name_any();
    if conditions_of(&memcached).is_empty() {
        let starting = conditions::new(AVAILABLE, Status::Unknown, "Reconciling")
            .message("Starting reconciliation");
        report(&memcached, &ctx, starting).await?;
    }

    let wanted = match deployment::of(&memcached, ctx.image.as_deref()) {
        Ok(deployment) => deployment,
        Err(error) => {
            let failed = conditions::new(AVAILABLE, Status::False, "Reconciling").message(format!(
                "Failed to create Deployment for the custom resource ({name}): ({error})"
            ));
            report(&memcached, &ctx, failed).await?;
            return Err(error);
        }
    };

    let namespace = memcached.namespace().unwrap_or_default();
    let Some(found) = ctx.cached::<Deployment>()?.named(&namespace, &name) else {
        ctx.apply_owned(&*memcached, wanted).await?;
        // The Deployment's own events bring us back sooner; this is for the case that none comes.
        return Ok(Action::requeue(Duration::from_secs(60)));
    };

    if deployment::replicas(&found) != Some(memcached.spec.size) {
        if let Err(error) = ctx.apply_owned(&*memcached, wanted).await {
            let failed = conditions::new(AVAILABLE, Status::False, "Resizing").message(format!(
                "Failed to update the size for the custom resource ({name}): ({error})"
            ));
            report(&memcached, &ctx, failed).await?;
            return Err(error);
        }
        return Ok(Action::requeue(Duration::from_secs(1)));
    }

    let size = memcached.spec.size;
    let available = conditions::new(AVAILABLE, Status::True, "Reconciling").message(format!(
        "Deployment for custom resource ({name}) with {size} replicas created successfully"
    ));
    report(&memcached, &ctx, available).await?;
    Ok(Action::await_change())
}

/// Says that a Memcached is about to go. What it owns goes with it, so nothing else is to be done.
///
/// When it has succeeded, the finalizer is removed, and the object is gone.
pub async fn cleanup(memcached: Arc<Memcached>, ctx: Ctx<State>) -> Result {
    let name = memcached.name_any();
    let began = conditions::new(DEGRADED, Status::Unknown, "Finalizing").message(format!(
        "Performing finalizer operations for the custom resource: {name}"
    ));
    let memcached = report(&memcached, &ctx, began).await?;

    let namespace = memcached.namespace().unwrap_or_default();
    let note = format!("Custom Resource {name} is being deleted from the namespace {namespace}");
    ctx.warning(&memcached, "Deleting", "DeleteCR", note);

    let done = conditions::new(DEGRADED, Status::True, "Finalizing").message(format!(
        "Finalizer operations for custom resource {name} name were successfully accomplished"
    ));
    report(&memcached, &ctx, done).await?;
    Ok(Action::await_change())
}

/// Writes a condition, and only where it says something new. Returns the object as it is then.
async fn report(
    memcached: &Memcached,
    ctx: &Ctx<State>,
    condition: Builder,
) -> Result<Memcached, Error> {
    let mut conditions = conditions_of(memcached).to_vec();
    conditions::set(&mut conditions, condition.observed(memcached));
    ctx.apply_status(memcached, MemcachedStatus { conditions })
        .await
}

fn conditions_of(memcached: &Memcached) -> &[conditions::Condition] {
    memcached
        .status
        .as_ref()
        .map_or(&[], |status| &status.conditions)
}
