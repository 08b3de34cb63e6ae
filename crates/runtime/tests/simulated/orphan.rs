//! Something created by the operator is left behind.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Manager, Result, Watch};
use serde_json::json;

use crate::Case;
use crate::children::{cluster_role, config_map, delete_cached, labelled_owner};
use crate::kinds::{App, Labelled, Site, crds, declared, namespace};

const CLASS: &str = "orphan";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "cluster_role_without_cleanup",
        class: CLASS,
        oracle: "deletion",
        broken: forgotten::register::<false>,
        repaired: forgotten::register::<true>,
        crds: crds::<Site>,
        declarations: || vec![declared::<Site>(json!({ "image": "nginx", "expose": false }))],
        role: None,
    },
    Case {
        name: "renamed_child",
        class: CLASS,
        oracle: "path",
        broken: renamed::register::<false>,
        repaired: renamed::register::<true>,
        crds: crds::<Labelled>,
        declarations: || vec![declared::<Labelled>(json!({ "label": "red" }))],
        role: None,
    },
    Case {
        name: "scaled_down_by_more_than_one",
        class: CLASS,
        oracle: "path",
        broken: scaled_down::register::<false>,
        repaired: scaled_down::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 3 }))],
        role: None,
    },
];

/// Only some objects need a ClusterRole, which has no owner, so it isn't deleted with them:
/// crossplane/crossplane#749.
mod forgotten {
    use super::*;

    async fn reconcile(site: Arc<Site>, ctx: Ctx<()>) -> Result {
        let child = config_map(site.name_any(), [("image", site.spec.image.clone())]);
        ctx.apply_owned(&*site, child).await?;
        let role = cluster_role(&*site);
        match site.spec.expose {
            true => drop(ctx.apply(role).await?),
            false => delete_cached::<ClusterRole, _>(&ctx, "", &role.name_any()).await?,
        }
        Ok(Action::await_change())
    }

    async fn cleanup(site: Arc<Site>, ctx: Ctx<()>) -> Result {
        ctx.delete(&cluster_role(&*site)).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile, ())
            .owns::<ConfigMap>()
            .watches(|role: &ClusterRole, _| labelled_owner(role));
        manager.controller(match REPAIRED {
            true => controller.finalizer("simulated.example.com/cluster-role", cleanup),
            false => controller,
        })
    }
}

/// The spec contains the child's name. When it changes, the old child is left behind:
/// apache/solr-operator#673, for a Service.
mod renamed {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(labelled: Arc<Labelled>, ctx: Ctx<()>) -> Result {
        let name = format!("{}-{}", labelled.name_any(), labelled.spec.label);
        let child = config_map(&name, [("text", "text".to_owned())]);
        ctx.apply_owned(&*labelled, child).await?;
        if REPAIRED {
            let children = ctx.cached::<ConfigMap>()?.in_namespace(&namespace(&*labelled));
            let is_owned = |child: &ConfigMap| {
                let owners = child.owner_references();
                owners
                    .iter()
                    .any(|owner| Some(&owner.uid) == labelled.metadata.uid.as_ref())
            };
            for child in children
                .iter()
                .filter(|child| is_owned(child) && child.name_any() != name)
            {
                ctx.delete(&**child).await?;
            }
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<ConfigMap, _>::owned()))
    }
}

/// The operator assumes that sizes change by one, so it only removes one member. Other leaks after
/// scaling down are K8SPXC-897 and Orange-OpenSource/casskop#370.
mod scaled_down {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let name = |number| format!("{}-{number}", app.name_any());
        for number in 0..app.spec.size {
            ctx.apply_owned(&*app, config_map(name(number), [("text", "text".to_owned())]))
                .await?;
        }
        let last = if REPAIRED { 5 } else { app.spec.size };
        for number in app.spec.size..=last {
            delete_cached::<ConfigMap, _>(&ctx, &namespace(&*app), &name(number)).await?;
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<ConfigMap, _>::owned()))
    }
}
