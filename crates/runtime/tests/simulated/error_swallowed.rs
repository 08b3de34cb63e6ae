//! A failed reconcile reports success, or that it should not be retried.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Error, Manager, ObjectRef, Result};
use serde_json::json;

use crate::Case;
use crate::children::{config_map, secret};
use crate::kinds::{App, Labelled, crds, declared, declared_map};

const CLASS: &str = "error swallowed";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "failed_apply_ignored",
        class: CLASS,
        oracle: "end-state",
        broken: ignored::register::<false>,
        repaired: ignored::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "every_error_is_final",
        class: CLASS,
        oracle: "end-state",
        broken: terminal::register::<false>,
        repaired: terminal::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "unreadable_is_absent",
        class: CLASS,
        oracle: "end-state",
        broken: absent::register::<false>,
        repaired: absent::register::<true>,
        crds: crds::<Labelled>,
        declarations: || {
            vec![
                declared_map("settings", "loud"),
                declared::<Labelled>(json!({ "label": "anna" })),
            ]
        },
        role: None,
    },
];

/// The operator ignores the error of an apply: integr8ly/gitea-operator#20.
mod ignored {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let child = config_map(app.name_any(), [("size", app.spec.size.to_string())]);
        let applied = ctx.apply_owned(&*app, child).await;
        if REPAIRED {
            applied?;
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}

/// The operator never retries: cert-manager/cert-manager#6378, where a request that failed once
/// remains failed.
mod terminal {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let child = config_map(app.name_any(), [("size", app.spec.size.to_string())]);
        match ctx.apply_owned(&*app, child).await {
            Err(error) if !REPAIRED => Err(Error::terminal(error.to_string())),
            applied => applied.map(|_| Action::await_change()),
        }
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}

/// If the settings can't be read, the operator uses the defaults:
/// netbirdio/kubernetes-operator#191, which doesn't distinguish an error from a missing object.
mod absent {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(login: Arc<Labelled>, ctx: Ctx<()>) -> Result {
        let settings = ctx.api::<ConfigMap>(&*login).get_opt("settings").await;
        let settings = match settings {
            Err(_) if !REPAIRED => None,
            settings => settings?,
        };
        let text = settings.and_then(|settings| settings.data?.remove("text"));
        let user = format!(
            "{} {}",
            text.unwrap_or_else(|| "quiet".to_owned()),
            login.spec.label
        );
        ctx.apply_owned(&*login, secret(login.name_any(), &user)).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let of_settings = |settings: &ConfigMap, _: &Ctx<()>| match settings.name_any().as_str() {
            "settings" => vec![ObjectRef::new("sample").within("default")],
            _ => Vec::new(),
        };
        let controller = Controller::new(reconcile::<REPAIRED>, ()).owns::<Secret>();
        manager.controller(controller.watches(of_settings))
    }
}
