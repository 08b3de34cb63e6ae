//! Work that only becomes due after a long time.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Manager, Result};
use serde_json::json;
use tokio::time::Instant;

use crate::Case;
use crate::children::config_map;
use crate::kinds::{App, crds, declared, report_phase};
use crate::memory::Times;

const CLASS: &str = "time";
/// In reality, this would be months. But the simulation doesn't wait any longer if nothing happens.
const LIFETIME: Duration = Duration::from_secs(60);

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "renewal_scheduled_only_at_creation",
        class: CLASS,
        oracle: "end-state",
        broken: renewal::register::<false>,
        repaired: renewal::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "renewal_tried_only_once",
        class: CLASS,
        oracle: "end-state",
        broken: tried_once::register::<false>,
        repaired: tried_once::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
];

/// Waits until the certificate has expired, and then reports a renewal.
async fn wait(app: &App, ctx: &Ctx<Times>, since: Instant) -> Result {
    let rest = LIFETIME.saturating_sub(since.elapsed());
    if rest.is_zero() {
        report_phase(ctx, app, "Renewed").await?;
        return Ok(Action::await_change());
    }
    Ok(Action::requeue(rest))
}

/// The operator schedules the renewal when it creates the certificate, and forgets it on a restart:
/// cert-manager/cert-manager#1023.
mod renewal {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<Times>) -> Result {
        let name = app.name_any();
        let exists = ctx.api::<ConfigMap>(&*app).get_opt(&name).await?.is_some();
        let child = config_map(&name, [("size", app.spec.size.to_string())]);
        ctx.apply_owned(&*app, child).await?;
        match ctx.known(&name) {
            None if exists && !REPAIRED => Ok(Action::await_change()),
            _ => wait(&app, &ctx, ctx.first(&name)).await,
        }
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, Times::default());
        manager.controller(controller.owns::<ConfigMap>())
    }
}

/// The operator records the attempt before it has succeeded, and doesn't retry:
/// cert-manager/cert-manager#6378 and #7639.
mod tried_once {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<Times>) -> Result {
        let name = app.name_any();
        let child = config_map(&name, [("size", app.spec.size.to_string())]);
        ctx.apply_owned(&*app, child).await?;
        let since = ctx.first(&name);
        let tried = format!("{name} tried");
        if !REPAIRED && since.elapsed() >= LIFETIME {
            if ctx.known(&tried).is_some() {
                return Ok(Action::await_change());
            }
            ctx.first(&tried);
        }
        wait(&app, &ctx, since).await
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, Times::default());
        manager.controller(controller.owns::<ConfigMap>())
    }
}
