//! The process crashes at an inconvenient time.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Manager, ObjectRef, Result};

use crate::children::{cluster_role, config_map, create, delete_named, labelled_owner, metadata, secret};
use crate::kinds::{App, Labelled};
use crate::second_set::exists_already;

/// Only the process that holds a lock can release it: operator-framework/operator-sdk#3339, where
/// the lock of a node that no longer exists blocks all others.
pub(super) mod lock {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        // No lock is needed, because the library never reconciles an object concurrently.
        if !REPAIRED && !take(&app, &ctx).await? {
            return Ok(Action::requeue(Duration::from_secs(5)));
        }
        let size = app.spec.size.to_string();
        ctx.apply_owned(&*app, config_map(app.name_any(), [("size", size)]))
            .await?;
        if !REPAIRED {
            delete_named::<Lease, _>(&ctx, &*app, &app.name_any()).await?;
        }
        Ok(Action::await_change())
    }

    async fn take(app: &App, ctx: &Ctx<()>) -> Result<bool> {
        let lease = Lease {
            metadata: metadata(app.name_any()),
            ..Lease::default()
        };
        match create(ctx, app, lease).await {
            Ok(_) => Ok(true),
            Err(error) if exists_already(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(in super::super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.owns::<ConfigMap>())
    }
}

/// The operator deletes what the App can't own on the event for the App's deletion. There are no
/// such events while the operator is down: zalando/postgres-operator#2678.
pub(super) mod on_event {
    use super::*;

    async fn reconcile(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let size = app.spec.size.to_string();
        ctx.apply_owned(&*app, config_map(app.name_any(), [("size", size)]))
            .await?;
        ctx.apply(cluster_role(&*app)).await?;
        Ok(Action::await_change())
    }

    async fn forget(app: ObjectRef<App>, ctx: Ctx<()>) -> Result {
        let mut gone = App::new(&app.name, crate::kinds::AppSpec { size: 1 });
        gone.metadata.namespace.clone_from(&app.namespace);
        delete_role(&gone, &ctx).await
    }

    async fn cleanup(app: Arc<App>, ctx: Ctx<()>) -> Result {
        delete_role(&app, &ctx).await
    }

    async fn delete_role(app: &App, ctx: &Ctx<()>) -> Result {
        let name = cluster_role(app).name_any();
        let roles = kube::Api::<ClusterRole>::all(ctx.client());
        if roles.get_opt(&name).await?.is_some() {
            roles.delete(&name, &kube::api::DeleteParams::default()).await?;
        }
        Ok(Action::await_change())
    }

    pub(in super::super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile, ())
            .owns::<ConfigMap>()
            .watches(|role: &ClusterRole, _| labelled_owner(role));
        manager.controller(match REPAIRED {
            true => controller.finalizer("simulated.example.com/role", cleanup),
            false => controller.on_deleted(forget),
        })
    }
}

/// The operator generates the password together with the settings, and again whenever it restores
/// them: kloeckner-i/db-operator#170 replaces an entire Secret because of a single part.
pub(super) mod password {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(login: Arc<Labelled>, ctx: Ctx<()>) -> Result {
        let name = login.name_any();
        let known = ctx.api::<Secret>(&*login).get_opt(&name).await?;
        let is_set_up = ctx.api::<ConfigMap>(&*login).get_opt(&name).await?.is_some();
        let password = match known.and_then(|mut secret| secret.data.as_mut()?.remove("password")) {
            Some(password) if REPAIRED || is_set_up => password,
            _ => ByteString(ctx.random().to_string().into_bytes()),
        };
        let mut wanted = secret(&name, &login.spec.label);
        let data = wanted.data.get_or_insert_default();
        data.insert("password".to_owned(), password);
        ctx.apply_owned(&*login, wanted).await?;
        let settings = config_map(&name, [("user", login.spec.label.clone())]);
        ctx.apply_owned(&*login, settings).await?;
        Ok(Action::await_change())
    }

    pub(in super::super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.owns::<Secret>().owns::<ConfigMap>())
    }
}
