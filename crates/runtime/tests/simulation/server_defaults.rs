//! Operators that take what the server has changed for a change by somebody else.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use rbuilder::simulation::{Oracle, World};
use rbuilder::{Action, Controller, Ctx, Manager, Result, Watch};
use serde_json::{Value, json};

use super::{Widget, map_of, service_of, simulate};

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
        let api: Api<Deployment> = ctx.api(&*widget);
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

/// Only restores the field that it sets. Others may change the server's defaults.
async fn creates_and_restores(widget: Arc<Widget>, ctx: Ctx<()>) -> Result {
    let api: Api<Deployment> = ctx.api(&*widget);
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

/// Publishes the address of a Service for other programs.
async fn publishes_address(widget: Arc<Widget>, ctx: Ctx<()>) -> Result {
    let service = ctx.apply_owned(&*widget, service_of(&widget)?).await?;
    let address = service.spec.and_then(|spec| spec.cluster_ip);
    let mut map = map_of(&widget);
    map.data = address.map(|address| BTreeMap::from([("address".to_owned(), address)]));
    ctx.apply_owned(&*widget, map).await?;
    Ok(Action::await_change())
}

/// Publishes the address only once, so it is stale after somebody has deleted the Service.
async fn publishes_first_address(widget: Arc<Widget>, ctx: Ctx<()>) -> Result {
    let name = widget.name_any();
    let is_published = ctx.cached::<ConfigMap>()?.named("default", &name).is_some();
    if is_published {
        ctx.apply_owned(&*widget, service_of(&widget)?).await?;
        return Ok(Action::await_change());
    }
    publishes_address(widget, ctx).await
}

fn register_correct(manager: Manager) -> Manager {
    let controller = Controller::new(publishes_address, ());
    manager.controller(controller.owns::<ConfigMap>().owns::<Service>())
}

fn register_outdated(manager: Manager) -> Manager {
    let controller = Controller::new(publishes_first_address, ());
    let controller = controller.watch(Watch::<ConfigMap, _>::owned());
    manager.controller(controller.owns::<Service>())
}

#[test]
fn services_have_addresses_that_operators_can_publish() {
    let has_address = |world: &World| {
        let mut maps = world.of("", "configmaps");
        match maps.all(|map| map.value()["data"]["address"].is_string()) {
            true => Ok(()),
            false => Err("a map has no address".to_owned()),
        }
    };
    let report = simulate(register_correct)
        .invariant(has_address)
        .histories(60)
        .run();
    assert!(report.failures.is_empty(), "{report}");
    assert!(!report.to_string().contains("not compared"), "{report}");
    let report = simulate(register_outdated).histories(60).run();
    assert!(!report.failures.is_empty(), "{report}");
}
