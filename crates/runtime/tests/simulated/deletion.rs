//! The operator blocks the owner's deletion, or doesn't delete its children.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::Patch;
use kube::{Resource, ResourceExt};
use rbuilder::{Action, Controller, Ctx, Manager, Result};
use serde_json::json;

use crate::Case;
use crate::children::{OWNER, config_map, delete_named, force, labels, service};
use crate::kinds::{App, Site, crds, declared};

const CLASS: &str = "deletion";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "children_made_again_during_a_foreground_deletion",
        class: CLASS,
        oracle: "deletion",
        broken: readopts::register::<false>,
        repaired: readopts::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "waits_for_a_child_that_waits_for_its_owner",
        class: CLASS,
        oracle: "deletion",
        broken: waits::register::<false>,
        repaired: waits::register::<true>,
        crds: crds::<Site>,
        declarations: || vec![declared::<Site>(json!({ "image": "nginx", "expose": false }))],
        role: None,
    },
    Case {
        name: "owner_set_after_the_creation",
        class: CLASS,
        oracle: "end-state",
        broken: owner_later::register::<false>,
        repaired: owner_later::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
];

/// A terminating owner is reconciled as usual: dragonflydb/dragonfly-operator#408,
/// ClickHouse/clickhouse-operator#309, SeldonIO/seldon-core#2781.
mod readopts {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let mut child = config_map(app.name_any(), [("size", app.spec.size.to_string())]);
        if REPAIRED {
            ctx.apply_owned(&*app, child).await?;
            return Ok(Action::await_change());
        }
        child.metadata.owner_references = app.controller_owner_ref(&()).map(|mut owner| {
            owner.block_owner_deletion = Some(true);
            vec![owner]
        });
        force(&ctx, &*app, child).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>();
        manager.controller(match REPAIRED {
            true => controller,
            false => controller.reconciles_terminating(),
        })
    }
}

/// The cleanup waits for a child, but the garbage collector doesn't delete the child before the
/// owner is gone: openeverest/openeverest-operator#949.
mod waits {
    use super::*;

    async fn reconcile(site: Arc<Site>, ctx: Ctx<()>) -> Result {
        let child = config_map(site.name_any(), [("image", site.spec.image.clone())]);
        ctx.apply_owned(&*site, child).await?;
        match site.spec.expose {
            true => drop(ctx.apply_owned(&*site, service(site.name_any())).await?),
            false => drop(delete_named::<Service, _>(&ctx, &*site, &site.name_any()).await?),
        }
        Ok(Action::await_change())
    }

    async fn cleanup<const REPAIRED: bool>(site: Arc<Site>, ctx: Ctx<()>) -> Result {
        delete_named::<ConfigMap, _>(&ctx, &*site, &site.name_any()).await?;
        if REPAIRED {
            delete_named::<Service, _>(&ctx, &*site, &site.name_any()).await?;
        }
        let service = ctx.api::<Service>(&*site).get_opt(&site.name_any()).await?;
        Ok(match service {
            Some(_) => Action::requeue(Duration::from_secs(5)),
            None => Action::await_change(),
        })
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile, ())
            .owns::<ConfigMap>()
            .owns::<Service>();
        manager.controller(controller.finalizer("simulated.example.com/children", cleanup::<REPAIRED>))
    }
}

/// A second write sets the owner reference. Without it, the child is never deleted. This is an
/// *intermediate state* like K8SPXC-979.
mod owner_later {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let mut child = config_map(app.name_any(), [("size", app.spec.size.to_string())]);
        if REPAIRED {
            ctx.apply_owned(&*app, child).await?;
            return Ok(Action::await_change());
        }
        child.metadata.labels = Some(labels(&*app));
        let exists = ctx
            .api::<ConfigMap>(&*app)
            .get_opt(&app.name_any())
            .await?
            .is_some();
        child.metadata.namespace = app.namespace();
        let child = ctx.apply(child).await?;
        if !exists {
            let owner = app.controller_owner_ref(&());
            ctx.patch(
                &child,
                &Patch::Merge(json!({ "metadata": { "ownerReferences": [owner] } })),
            )
            .await?;
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let of_app = |child: &ConfigMap, _: &Ctx<()>| {
            let owner = child.labels().get(OWNER);
            owner
                .map(|name| rbuilder::ObjectRef::new(name).within("default"))
                .into_iter()
                .collect()
        };
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(match REPAIRED {
            true => controller.owns::<ConfigMap>(),
            false => controller.watches(of_app),
        })
    }
}
