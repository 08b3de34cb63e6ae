//! A dependency of the object is created later.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Manager, ObjectRef, Result, Watch};
use serde_json::json;

use crate::Case;
use crate::children::{config_map, deployment, is_available, secret};
use crate::kinds::{Labelled, Web, crds, declared, declared_map, report_phase};
use crate::memory::Times;

const CLASS: &str = "order";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "settings_that_arrive_later_are_not_watched",
        class: CLASS,
        oracle: "end-state",
        broken: unwatched::register::<false>,
        repaired: unwatched::register::<true>,
        crds: crds::<Labelled>,
        declarations: || {
            vec![
                declared_map("settings", "loud"),
                declared::<Labelled>(json!({ "label": "anna" })),
            ]
        },
        role: None,
    },
    Case {
        name: "waiting_given_up",
        class: CLASS,
        oracle: "end-state",
        broken: given_up::register::<false>,
        repaired: given_up::register::<true>,
        crds: crds::<Web>,
        declarations: || vec![declared::<Web>(json!({ "image": "nginx", "size": 1 }))],
        role: None,
    },
];

/// The operator isn't notified when the settings are created: grafana/tempo-operator#551,
/// shipwright-io/build#466, grafana/agent#655.
mod unwatched {
    use super::*;

    async fn reconcile(login: Arc<Labelled>, ctx: Ctx<()>) -> Result {
        let settings = ctx.api::<ConfigMap>(&*login).get_opt("settings").await?;
        let Some(text) = settings.and_then(|settings| settings.data?.remove("text")) else {
            return Ok(Action::await_change());
        };
        let user = format!("{text} {}", login.spec.label);
        ctx.apply_owned(&*login, secret(login.name_any(), &user)).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let of_settings = |settings: &ConfigMap, _: &Ctx<()>| match settings.name_any().as_str() {
            "settings" => vec![ObjectRef::new("sample").within("default")],
            _ => Vec::new(),
        };
        let controller = Controller::new(reconcile, ()).owns::<Secret>();
        manager.controller(match REPAIRED {
            true => controller.watches(of_settings),
            false => controller,
        })
    }
}

/// After ten seconds, the operator gives up on the Deployment: cert-manager/cert-manager#6378 and
/// #7639, where something that was unavailable once isn't retried.
mod given_up {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    async fn reconcile<const REPAIRED: bool>(web: Arc<Web>, ctx: Ctx<Times>) -> Result {
        let phase = web.status.clone().and_then(|status| status.phase);
        if !REPAIRED && phase.as_deref() == Some("Failed") {
            return Ok(Action::await_change());
        }
        let wanted = deployment(web.name_any(), &web.spec.image, web.spec.size);
        let applied = ctx.apply_owned(&*web, wanted).await?;
        if is_available(&applied) {
            ctx.forget(&web.name_any());
            let child = config_map(web.name_any(), [("text", "ready".to_owned())]);
            ctx.apply_owned(&*web, child).await?;
            return Ok(Action::await_change());
        }
        if REPAIRED {
            return Ok(Action::await_change());
        }
        if ctx.first(&web.name_any()).elapsed() > PATIENCE {
            report_phase(&ctx, &*web, "Failed").await?;
        }
        Ok(Action::requeue(Duration::from_secs(1)))
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, Times::default()).owns::<ConfigMap>();
        manager.controller(controller.watch(Watch::<Deployment, _>::owned()))
    }
}
