// SPDX-License-Identifier: Apache-2.0

//! The controller of Memcached: brings the cluster to what each object asks for.

use std::sync::Arc;

use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Result, conditions, rbac};
use tracing::info;

use crate::api::v1alpha1::Memcached;

/// What the reconciles share: clients of other services, settings.
#[derive(Debug, Default)]
pub struct State {}

/// The controller as the manager runs it. Add what it owns and watches here.
pub fn controller() -> Controller<Memcached, State> {
    Controller::new(reconcile, State::default())
}

/// Called when an object, or something that it owns, has changed. May be called again at any time for the same state.
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
pub async fn reconcile(object: Arc<Memcached>, ctx: Ctx<State>) -> Result {
    info!(name = object.name_any(), "reconciling");

    // Apply what the object asks for here, for example with `ctx.apply_owned(&*object, child)`.

    let mut status = object.status.clone().unwrap_or_default();
    let available = conditions::new("Available", true, "Reconciled").observed(&*object);
    conditions::set(&mut status.conditions, available);
    ctx.apply_status(&*object, status).await?;
    Ok(Action::await_change())
}
