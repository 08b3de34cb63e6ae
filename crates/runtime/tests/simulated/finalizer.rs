//! The finalizer is removed too early, or never.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::ResourceExt;
use kube::api::DeleteParams;
use rbuilder::{Action, Controller, Ctx, Manager, Result};
use serde_json::json;

use crate::Case;
use crate::children::{cluster_role, config_map, labelled_owner};
use crate::kinds::{App, crds, declared, report_phase};

const CLASS: &str = "finalizer";
const FINALIZER: &str = "simulated.example.com/cluster-role";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "failed_cleanup_ignored",
        class: CLASS,
        oracle: "deletion",
        broken: ignored::register::<false>,
        repaired: ignored::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "already_gone_is_a_failure",
        class: CLASS,
        oracle: "deletion",
        broken: gone::register::<false>,
        repaired: gone::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "cleanup_needs_a_lost_child",
        class: CLASS,
        oracle: "deletion",
        broken: lost_settings::register::<false>,
        repaired: lost_settings::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
];

/// Applies a ClusterRole, which the App can't own, and a ConfigMap that contains its name.
async fn reconcile(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let role = cluster_role(&*app);
    let data = [("role", role.name_any()), ("size", app.spec.size.to_string())];
    ctx.apply_owned(&*app, config_map(app.name_any(), data)).await?;
    ctx.apply(role).await?;
    Ok(Action::await_change())
}

fn controller() -> Controller<App, ()> {
    Controller::new(reconcile, ())
        .owns::<ConfigMap>()
        .watches(|role: &ClusterRole, _| labelled_owner(role))
}

/// The operator removes the finalizer after a failed cleanup, so the role is left behind:
/// SAP/crossplane-provider-btp#427.
mod ignored {
    use super::*;

    async fn cleanup<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let deleted = ctx.delete(&cluster_role(&*app)).await;
        if REPAIRED {
            deleted?;
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(controller().finalizer(FINALIZER, cleanup::<REPAIRED>))
    }
}

/// The cleanup fails if there's nothing to delete, so the object is never deleted:
/// aclerici38/pocket-id-operator#545.
mod gone {
    use super::*;

    async fn cleanup<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let role = cluster_role(&*app);
        match REPAIRED {
            true => drop(ctx.delete(&role).await?),
            false => {
                let roles = ctx.api::<ClusterRole>(&*app);
                drop(roles.delete(&role.name_any(), &DeleteParams::default()).await?);
            }
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(controller().finalizer(FINALIZER, cleanup::<REPAIRED>))
    }
}

/// The cleanup needs a child that was already deleted: netbirdio/kubernetes-operator#191.
mod lost_settings {
    use super::*;

    async fn cleanup<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        report_phase(&ctx, &*app, "Deleting").await?;
        let mut role = cluster_role(&*app);
        if !REPAIRED {
            let settings = ctx.api::<ConfigMap>(&*app).get(&app.name_any()).await?;
            role.metadata.name = settings.data.and_then(|mut data| data.remove("role"));
        }
        ctx.delete(&role).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(controller().finalizer(FINALIZER, cleanup::<REPAIRED>))
    }
}
