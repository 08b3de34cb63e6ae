//! The operator crashes between two writes of a reconcile.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Manager, Result};
use serde_json::json;

use crate::Case;
use crate::children::{claim, config_map};
use crate::kinds::{App, Store, crds, declared, report_phase};

const CLASS: &str = "crash between two writes";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "second_child_only_with_the_first",
        class: CLASS,
        oracle: "end-state",
        broken: second_child::register::<false>,
        repaired: second_child::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "claim_resized_only_with_the_settings",
        class: CLASS,
        oracle: "end-state",
        broken: resize::register::<false>,
        repaired: resize::register::<true>,
        crds: crds::<Store>,
        declarations: || vec![declared::<Store>(json!({ "storage": 1 }))],
        role: None,
    },
    Case {
        name: "phase_written_before_its_work",
        class: CLASS,
        oracle: "end-state",
        broken: phase::register::<false>,
        repaired: phase::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
];

/// The second child is only created by the reconcile that creates the first one. Sieve calls this
/// *intermediate state* (e.g. K8SPXC-896 and K8SPSMDB-578).
mod second_child {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let name = app.name_any();
        let is_new = ctx.api::<ConfigMap>(&*app).get_opt(&name).await?.is_none();
        let first = config_map(&name, [("size", app.spec.size.to_string())]);
        ctx.apply_owned(&*app, first).await?;
        if REPAIRED || is_new {
            let second = config_map(format!("{name}-peers"), [("port", "80".to_owned())]);
            ctx.apply_owned(&*app, second).await?;
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}

/// An object written before the claim determines whether to resize the claim:
/// rabbitmq/cluster-operator#782.
mod resize {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(store: Arc<Store>, ctx: Ctx<()>) -> Result {
        let (name, storage) = (store.name_any(), store.spec.storage);
        let settings = ctx.api::<ConfigMap>(&*store).get_opt(&name).await?;
        let known = settings.and_then(|settings| settings.data?.remove("storage"));
        let claim = claim(&name, storage);
        if !REPAIRED && known == Some(storage.to_string()) {
            ctx.create_owned(&*store, claim).await?;
            return Ok(Action::await_change());
        }
        let settings = config_map(&name, [("storage", storage.to_string())]);
        ctx.apply_owned(&*store, settings).await?;
        ctx.apply_owned(&*store, claim).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.owns::<ConfigMap>().owns::<PersistentVolumeClaim>())
    }
}

/// The operator writes the phase before doing the work, and trusts it after a restart. Sieve lists
/// konpyutaika/nifikop#49 and #79 as such bugs.
mod phase {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let name = app.name_any();
        let is_created = app.status.as_ref().is_some_and(|status| status.phase.is_some());
        let exists = ctx.api::<ConfigMap>(&*app).get_opt(&name).await?.is_some();
        if !REPAIRED {
            report_phase(&ctx, &*app, "Created").await?;
        }
        if REPAIRED || !is_created || exists {
            let child = config_map(&name, [("size", app.spec.size.to_string())]);
            ctx.apply_owned(&*app, child).await?;
        }
        report_phase(&ctx, &*app, "Created").await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}
