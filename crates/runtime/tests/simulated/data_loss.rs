//! Data is deleted and recreated while its owner still exists.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Manager, Result, Watch};
use serde_json::json;

use crate::Case;
use crate::children::{claim, config_map, requested, secret};
use crate::kinds::{Labelled, Store, crds, declared, namespace};

const CLASS: &str = "data loss";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "claim_made_again_to_grow",
        class: CLASS,
        oracle: "data",
        broken: grown::register::<false>,
        repaired: grown::register::<true>,
        crds: crds::<Store>,
        declarations: || vec![declared::<Store>(json!({ "storage": 1 }))],
        role: None,
    },
    Case {
        name: "claim_named_after_a_field",
        class: CLASS,
        oracle: "data",
        broken: named::register::<false>,
        repaired: named::register::<true>,
        crds: crds::<Labelled>,
        declarations: || vec![declared::<Labelled>(json!({ "label": "fast" }))],
        role: None,
    },
    Case {
        name: "password_lost_with_the_user",
        class: CLASS,
        oracle: "data",
        broken: password::register::<false>,
        repaired: password::register::<true>,
        crds: crds::<Labelled>,
        declarations: || vec![declared::<Labelled>(json!({ "label": "anna" }))],
        role: None,
    },
];

/// The operator resizes a claim by deleting and recreating it: Altinity/clickhouse-operator#730.
mod grown {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(store: Arc<Store>, ctx: Ctx<()>) -> Result {
        let wanted = claim(store.name_any(), store.spec.storage);
        let claims = ctx.cached::<PersistentVolumeClaim>()?;
        if !REPAIRED
            && let Some(found) = claims.named(&namespace(&*store), &store.name_any())
            && requested(&found) != requested(&wanted)
        {
            ctx.delete(&*found).await?;
        }
        ctx.apply_owned(&*store, wanted).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<PersistentVolumeClaim, _>::owned()))
    }
}

/// The name of the claim is derived from a field in the spec. When the field changes, the operator
/// prunes the old claim: vexxhost/atmosphere#518.
mod named {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(store: Arc<Labelled>, ctx: Ctx<()>) -> Result {
        let label = &store.spec.label;
        ctx.apply_owned(&*store, config_map(store.name_any(), [("class", label.clone())]))
            .await?;
        if REPAIRED {
            ctx.apply_owned(&*store, claim(store.name_any(), 1)).await?;
            return Ok(Action::await_change());
        }
        let name = format!("{}-{label}", store.name_any());
        ctx.apply_owned(&*store, claim(&name, 1)).await?;
        let claims = ctx
            .cached::<PersistentVolumeClaim>()?
            .in_namespace(&namespace(&*store));
        for claim in claims.iter().filter(|claim| claim.name_any() != name) {
            ctx.delete(&**claim).await?;
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>();
        manager.controller(controller.watch(Watch::<PersistentVolumeClaim, _>::owned()))
    }
}

/// The operator replaces a Secret because the user has changed. The password wasn't stored anywhere
/// else: crossplane/crossplane#64.
mod password {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(login: Arc<Labelled>, ctx: Ctx<()>) -> Result {
        let wanted = secret(login.name_any(), &login.spec.label);
        let found = ctx
            .cached::<Secret>()?
            .named(&namespace(&*login), &login.name_any());
        if !REPAIRED
            && let Some(found) = found
            && found.data != wanted.data
        {
            ctx.delete(&*found).await?;
        }
        ctx.apply_owned(&*login, wanted).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<Secret, _>::owned()))
    }
}
