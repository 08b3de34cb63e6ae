//! The server processes a write, but the response is lost.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Manager, Result};
use serde_json::json;

use crate::Case;
use crate::children::{config_map, create};
use crate::kinds::{App, crds, declared, report, report_phase};

const CLASS: &str = "response lost";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "generated_name_known_only_from_the_answer",
        class: CLASS,
        oracle: "end-state",
        broken: generated_name::register::<false>,
        repaired: generated_name::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "own_child_taken_for_a_foreign_one",
        class: CLASS,
        oracle: "end-state",
        broken: already_exists::register::<false>,
        repaired: already_exists::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
];

/// The operator only knows the generated name of a child from the response:
/// crossplane/crossplane-runtime#279.
mod generated_name {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let known = app.status.clone().and_then(|status| status.id);
        let name = match known {
            _ if REPAIRED => app.name_any(),
            Some(name) => name,
            None => {
                let mut child = config_map("", [("size", app.spec.size.to_string())]);
                child.metadata.name = None;
                child.metadata.generate_name = Some(format!("{}-", app.name_any()));
                create(&ctx, &*app, child).await?.name_any()
            }
        };
        report(&ctx, &*app, |status| status.id = Some(name.clone())).await?;
        let child = config_map(name, [("size", app.spec.size.to_string())]);
        ctx.apply_owned(&*app, child).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}

/// The child already exists when the operator retries the create, so the operator concludes that it
/// belongs to another owner: wildfly/wildfly-operator#120, infinispan/infinispan-operator#203.
mod already_exists {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let child = config_map(app.name_any(), [("size", app.spec.size.to_string())]);
        let phase = app.status.clone().and_then(|status| status.phase);
        if !REPAIRED && phase.is_none() {
            match create(&ctx, &*app, child).await {
                Err(error) if is_conflict(&error) => report_phase(&ctx, &*app, "NameTaken").await?,
                Err(error) => return Err(error),
                Ok(_) => report_phase(&ctx, &*app, "Created").await?,
            };
            return Ok(Action::await_change());
        }
        if REPAIRED || phase.as_deref() == Some("Created") {
            ctx.apply_owned(&*app, child).await?;
            report_phase(&ctx, &*app, "Created").await?;
        }
        Ok(Action::await_change())
    }

    fn is_conflict(error: &rbuilder::Error) -> bool {
        matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.reason == "AlreadyExists")
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}
