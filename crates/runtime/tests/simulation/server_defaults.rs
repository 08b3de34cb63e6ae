//! Operators that take what the server has changed for a change by somebody else.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use rbuilder::simulation::Oracle;
use rbuilder::{Action, Controller, Ctx, Manager, Result, Watch};
use serde_json::{Value, json};

use super::{Widget, simulate};

/// The field that the operator compares with what it wants.
#[derive(Clone, Copy)]
struct Compared(&'static str);

fn wanted(widget: &Widget) -> Result<Deployment> {
    let labels = json!({ "app": widget.name_any() });
    let container = json!({ "name": "main", "image": "a", "resources": { "limits": { "cpu": "1000m" } } });
    Ok(serde_json::from_value(json!({
        "metadata": { "name": widget.name_any() },
        "spec": {
            "replicas": widget.spec.size, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    }))?)
}

async fn recreates_what_differs(widget: Arc<Widget>, ctx: Ctx<Compared>) -> Result {
    let wanted = wanted(&widget)?;
    let Compared(field) = *ctx;
    let compared = |deployment: &Deployment| -> Result<Option<Value>> {
        Ok(serde_json::to_value(deployment)?.pointer(field).cloned())
    };
    if let Some(found) = ctx.cached::<Deployment>()?.named("default", &widget.name_any())
        && compared(&found)? != compared(&wanted)?
    {
        let api: Api<Deployment> = Api::namespaced(ctx.client(), "default");
        api.delete(&widget.name_any(), &DeleteParams::default()).await?;
    }
    ctx.apply_owned(&*widget, wanted).await?;
    Ok(Action::await_change())
}

fn register(manager: Manager, field: &'static str) -> Manager {
    let controller = Controller::new(recreates_what_differs, Compared(field));
    manager.controller(controller.watch(Watch::<Deployment, _>::owned()))
}

#[test]
fn defaults_and_canonical_quantities_lead_to_hot_loops() {
    let registrations: [fn(Manager) -> Manager; 2] = [
        |manager| register(manager, "/spec/revisionHistoryLimit"),
        |manager| register(manager, "/spec/template/spec/containers/0/resources"),
    ];
    for broken in registrations {
        let report = simulate(broken).histories(1).run();
        let oracles: Vec<Oracle> = report.failures.iter().map(|failure| failure.oracle).collect();
        assert!(oracles.contains(&Oracle::Quiet), "{report}");
    }
    let repaired = |manager| register(manager, "/spec/template/spec/containers/0/image");
    let report = simulate(repaired).histories(20).run();
    assert!(report.failures.is_empty(), "{report}");
}

/// Restores the field that the operator has written. The server's defaults may be changed by others.
async fn creates_and_restores(widget: Arc<Widget>, ctx: Ctx<()>) -> Result {
    let api: Api<Deployment> = Api::namespaced(ctx.client(), "default");
    let mut wanted = wanted(&widget)?;
    wanted.metadata.owner_references = Some(widget.controller_owner_ref(&()).into_iter().collect());
    let Some(found) = api.get_opt(&widget.name_any()).await? else {
        api.create(&PostParams::default(), &wanted).await?;
        return Ok(Action::await_change());
    };
    if found.spec.replicas != wanted.spec.replicas {
        let patch = Patch::Merge(json!({ "spec": { "replicas": wanted.spec.replicas } }));
        api.patch(&widget.name_any(), &PatchParams::default(), &patch)
            .await?;
    }
    Ok(Action::await_change())
}

#[test]
fn others_may_change_defaults_of_the_server() {
    let register = |manager: Manager| {
        let controller = Controller::new(creates_and_restores, ());
        manager.controller(controller.watch(Watch::<Deployment, _>::owned()))
    };
    let report = simulate(register).histories(60).run();
    assert!(report.failures.is_empty(), "{report}");
}
