//! Operators that take what the server has changed for a change by somebody else.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
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
