//! An external system whose responses the operator must remember. It is represented by the kind
//! `Machine` on the API server, so it survives restarts and its responses can get lost.

use std::sync::Arc;

use kube::api::{ListParams, PostParams};
use kube::{Api, CustomResourceExt, ResourceExt};
use rbuilder::{Action, Controller, Ctx, Manager, Result};
use serde_json::json;

use crate::Case;
use crate::children::{OWNER, cluster_role, delete_named, labelled_owner};
use crate::kinds::{App, Machine, MachineSpec, declared, report};

const CLASS: &str = "external system";
const FINALIZER: &str = "simulated.example.com/machine";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "identifier_of_a_machine_lost",
        class: CLASS,
        oracle: "end-state",
        broken: lost_id::register::<false>,
        repaired: lost_id::register::<true>,
        crds: || vec![App::crd(), Machine::crd()],
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "identifier_forgotten_before_the_deletion",
        class: CLASS,
        oracle: "deletion",
        broken: forgotten_id::register::<false>,
        repaired: forgotten_id::register::<true>,
        crds: || vec![App::crd(), Machine::crd()],
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "size_recorded_before_the_resize",
        class: CLASS,
        oracle: "end-state",
        broken: recorded::register::<false>,
        repaired: recorded::register::<true>,
        crds: || vec![App::crd(), Machine::crd()],
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
];

/// The name of the machine is derived from the App, so ordering it twice is harmless.
fn machine(app: &App) -> Machine {
    let role = cluster_role(app);
    let mut machine = Machine::new(&role.name_any(), MachineSpec { size: app.spec.size });
    machine.metadata.labels = role.metadata.labels;
    machine
}

/// Asks the external system for all machines of an App.
async fn machines(ctx: &Ctx<()>, app: &App) -> Result<Vec<Machine>> {
    let of_app = ListParams::default().labels(&format!("{OWNER}={}", app.name_any()));
    Ok(ctx.api::<Machine>(app).list(&of_app).await?.items)
}

async fn delete_all(app: Arc<App>, ctx: Ctx<()>) -> Result {
    for machine in machines(&ctx, &app).await? {
        ctx.delete(&machine).await?;
    }
    Ok(Action::await_change())
}

/// The operator only knows a machine's name from the response. If the response is lost, it orders
/// another machine: crossplane/crossplane-runtime#279, crossplane-contrib/provider-upjet-aws#1482.
mod lost_id {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let mut wanted = machine(&app);
        let known = app.status.clone().and_then(|status| status.id);
        if !REPAIRED {
            wanted.metadata.name = known.clone();
        }
        if !REPAIRED && known.is_none() {
            wanted.metadata.generate_name = Some("machine-".to_owned());
            let api: Api<Machine> = ctx.api(&*app);
            let ordered = api.create(&PostParams::default(), &wanted).await?;
            report(&ctx, &*app, |status| status.id = Some(ordered.name_any())).await?;
            return Ok(Action::await_change());
        }
        ctx.apply(wanted).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ()).finalizer(FINALIZER, delete_all);
        manager.controller(controller.watches(|machine: &Machine, _| labelled_owner(machine)))
    }
}

/// The cleanup drops the identifier before the machine is gone: SAP/crossplane-provider-btp#427.
mod forgotten_id {
    use super::*;

    async fn reconcile(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let wanted = machine(&app);
        report(&ctx, &*app, |status| status.id = wanted.metadata.name.clone()).await?;
        ctx.apply(wanted).await?;
        Ok(Action::await_change())
    }

    async fn cleanup(app: Arc<App>, ctx: Ctx<()>) -> Result {
        if let Some(id) = app.status.clone().and_then(|status| status.id) {
            report(&ctx, &*app, |status| status.id = None).await?;
            delete_named::<Machine, _>(&ctx, &*app, &id).await?;
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller =
            Controller::new(reconcile, ()).watches(|machine: &Machine, _| labelled_owner(machine));
        manager.controller(match REPAIRED {
            true => controller.finalizer(FINALIZER, delete_all),
            false => controller.finalizer(FINALIZER, cleanup),
        })
    }
}

/// The status says that the machine was resized before the operator orders it:
/// crossplane/crossplane#3037, where a restarted process trusts a write from before the call.
mod recorded {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let known = app.status.clone().and_then(|status| status.count);
        if REPAIRED || known != Some(app.spec.size) {
            report(&ctx, &*app, |status| status.count = Some(app.spec.size)).await?;
            ctx.apply(machine(&app)).await?;
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ()).finalizer(FINALIZER, delete_all);
        manager.controller(controller.watches(|machine: &Machine, _| labelled_owner(machine)))
    }
}
