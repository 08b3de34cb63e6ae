//! Simulations of small operators.

mod on_server;
mod replicas;
mod server_defaults;
mod values;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, CustomResource, CustomResourceExt, Resource, ResourceExt};
use rbuilder::simulation::{Oracle, Simulation};
use rbuilder::{Action, Controller, CrdSchema, Ctx, Error, Manager, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// WidgetSpec defines the desired state of Widget.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced)]
struct WidgetSpec {
    /// size is the number of parts.
    size: i32,
}

fn widget() -> serde_json::Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "a" }, "spec": { "size": 1 } })
}

fn simulate(register: fn(Manager) -> Manager) -> Simulation {
    Simulation::new(register)
        .crd(Widget::crd())
        .declare(&widget())
        .histories(200)
}

fn map_of(widget: &Widget) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(widget.name_any());
    map.data = Some(BTreeMap::from([(
        "size".to_owned(),
        widget.spec.size.to_string(),
    )]));
    map
}

fn service_of(widget: &Widget) -> Result<Service> {
    let name = widget.name_any();
    Ok(serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": { "selector": { "app": name }, "ports": [{ "port": 80 }] },
    }))?)
}

async fn applies_both(widget: Arc<Widget>, ctx: Ctx<()>) -> Result {
    ctx.apply_owned(&*widget, map_of(&widget)).await?;
    ctx.apply_owned(&*widget, service_of(&widget)?).await?;
    Ok(Action::await_change())
}

fn register_correct(manager: Manager) -> Manager {
    manager.controller(
        Controller::new(applies_both, ())
            .owns::<ConfigMap>()
            .owns::<Service>(),
    )
}

/// The child is in the namespace of its owner.
async fn applies_map(widget: Arc<Widget>, ctx: Ctx<()>) -> Result {
    ctx.apply_owned(&*widget, map_of(&widget)).await?;
    Ok(Action::await_change())
}

fn register_owner_namespace(manager: Manager) -> Manager {
    manager.controller(Controller::new(applies_map, ()).owns::<ConfigMap>())
}

/// Returns early if the first object exists.
async fn stops_when_first_exists(widget: Arc<Widget>, ctx: Ctx<()>) -> Result {
    let maps: Api<ConfigMap> = ctx.api(&*widget);
    if maps.get_opt(&widget.name_any()).await?.is_some() {
        return Ok(Action::await_change());
    }
    applies_both(widget, ctx).await
}

fn register_early_return(manager: Manager) -> Manager {
    let controller = Controller::new(stops_when_first_exists, ());
    manager.controller(controller.owns::<ConfigMap>().owns::<Service>())
}

/// Creates a child that is never deleted.
async fn forgets_owner(widget: Arc<Widget>, ctx: Ctx<()>) -> Result {
    let maps: Api<ConfigMap> = ctx.api(&*widget);
    if maps.get_opt(&widget.name_any()).await?.is_none() {
        maps.create(&PostParams::default(), &map_of(&widget)).await?;
    }
    Ok(Action::await_change())
}

fn register_orphan(manager: Manager) -> Manager {
    manager.controller(Controller::new(forgets_owner, ()))
}

#[test]
fn correct_operator_has_no_failures() {
    let report = simulate(register_correct).run();
    assert!(report.failures.is_empty(), "{report}");
    assert!(report.histories == 200, "{report}");
}

/// Declares an object for each kind that the environment knows. The operator does nothing.
fn workloads() -> Simulation {
    let labels = json!({ "app": "a" });
    let pods = json!({ "matchLabels": labels });
    let template = json!({
        "metadata": { "labels": labels },
        "spec": { "containers": [{ "name": "a", "image": "a" }] },
    });
    let metadata = json!({ "name": "a" });
    let apps = |kind: &str, mut spec: serde_json::Value| {
        spec["selector"] = pods.clone();
        spec["template"] = template.clone();
        json!({ "apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec })
    };
    let simulation = Simulation::of_client(|_| std::future::pending::<()>());
    simulation
        .declare(&apps("Deployment", json!({ "replicas": 3 })))
        .declare(&apps("StatefulSet", json!({ "replicas": 2, "serviceName": "a" })))
        .declare(&apps("ReplicaSet", json!({ "replicas": 2 })))
        .declare(&apps("DaemonSet", json!({})))
        .histories(20)
}

#[test]
fn slow_workloads_become_as_ready_as_prompt_ones() {
    let report = workloads().run();
    assert!(report.failures.is_empty(), "{report}");
}

#[test]
fn declared_objects_may_be_in_other_namespaces() {
    let mut widget = widget();
    widget["metadata"]["namespace"] = "team".into();
    let simulation = Simulation::new(register_owner_namespace);
    let simulation = simulation.crd(Widget::crd()).declare(&widget);
    let report = simulation.histories(200).run();
    assert!(report.failures.is_empty(), "{report}");
}

/// Each widget of size 1 gets a Secret whose value is either constant or unique.
async fn keeps_secret<const RANDOM: bool>(widget: Arc<Widget>, ctx: Ctx<()>) -> Result {
    let secrets: Api<Secret> = ctx.api(&*widget);
    let name = widget.name_any();
    let found = secrets.get_opt(&name).await?;
    if widget.spec.size != 1 {
        if let Some(found) = found {
            ctx.delete(&found).await?;
        }
    } else if found.is_none() {
        let word = match RANDOM {
            true => ctx.random().to_string(),
            false => "sesame".to_owned(),
        };
        let mut secret = Secret::default();
        secret.metadata.name = Some(name);
        secret.data = Some(BTreeMap::from([(
            "word".to_owned(),
            ByteString(word.into_bytes()),
        )]));
        ctx.apply_owned(&*widget, secret).await?;
    }
    Ok(Action::await_change())
}

fn data_is_lost<const RANDOM: bool>() -> bool {
    let register = |manager: Manager| {
        let controller = Controller::new(keeps_secret::<RANDOM>, ());
        manager.controller(controller.owns::<Secret>())
    };
    let failures = simulate(register).run().failures;
    failures.iter().any(|failure| failure.oracle == Oracle::Data)
}

#[test]
fn copied_secret_may_come_and_go() {
    assert!(data_is_lost::<true>());
    assert!(!data_is_lost::<false>());
}

/// The name of the ConfigMap is invalid.
async fn names_child_badly(widget: Arc<Widget>, ctx: Ctx<()>) -> Result {
    let mut map = map_of(&widget);
    map.metadata.name = Some("A".to_owned());
    ctx.apply_owned(&*widget, map).await?;
    Ok(Action::await_change())
}

#[test]
fn operator_whose_writes_are_invalid_is_reported() {
    let register = |manager: Manager| manager.controller(Controller::new(names_child_badly, ()));
    let report = simulate(register).run();
    let failure = &report.failures[0];
    assert_eq!(failure.oracle, Oracle::Invalid);
    let start =
        "the server never accepts `patch configmaps default/A`: ConfigMap \"A\" is invalid: metadata.name";
    assert!(failure.message.starts_with(start), "{}", failure.message);
}

/// Reads a ConfigMap that the user declares, and fails without it.
async fn requires_map<const CACHED: bool>(widget: Arc<Widget>, ctx: Ctx<()>) -> Result {
    let name = widget.name_any();
    let map = match CACHED {
        true => ctx.cached::<ConfigMap>()?.named("default", &name),
        false => ctx.api::<ConfigMap>(&*widget).get_opt(&name).await?.map(Arc::new),
    };
    map.ok_or_else(|| Error::new("the ConfigMap is missing"))?;
    ctx.apply_owned(&*widget, service_of(&widget)?).await?;
    Ok(Action::await_change())
}

#[test]
fn reconcile_that_always_fails_is_reported() {
    let run = |register: fn(Manager) -> Manager, declares_map: bool| {
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
        let simulation = simulate(register).histories(5);
        let simulation = if declares_map {
            simulation.declare(&map)
        } else {
            simulation
        };
        let report = simulation.run();
        let errors = report
            .failures
            .iter()
            .find(|failure| failure.oracle == Oracle::Error);
        errors.map(|failure| failure.message.clone())
    };
    let polling = |manager: Manager| manager.controller(Controller::new(requires_map::<false>, ()));
    assert_eq!(
        run(polling, false).as_deref(),
        Some("the reconcile of Widget default/a keeps failing: the ConfigMap is missing")
    );
    // The error disappears once the ConfigMap is declared, too.
    assert_eq!(run(polling, true), None);
    let uncached = |manager: Manager| manager.controller(Controller::new(requires_map::<true>, ()));
    let message = run(uncached, true).unwrap_or_default();
    assert!(message.contains("no cache for ConfigMap"), "{message}");
}

/// Updates an event every 30 seconds, as operators based on kube-rs do while they are waiting for
/// something.
async fn publishes_events(widget: Arc<Widget>, ctx: Ctx<()>) -> Result {
    let events: Api<Event> = Api::namespaced(ctx.client(), "default");
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": widget.name_any() },
        "type": "Normal", "reason": "Waiting", "action": "Wait", "note": format!("at {}", ctx.now()),
        "eventTime": "2030-01-01T00:00:00.000000Z", "regarding": widget.object_ref(&()),
        "reportingController": "widgets", "reportingInstance": "widgets-0",
    });
    let parameters = PatchParams::apply("widgets");
    events
        .patch(&widget.name_any(), &parameters, &Patch::Apply(event))
        .await?;
    Ok(Action::requeue(Duration::from_secs(30)))
}

#[test]
fn repeated_events_are_no_changes() {
    let register = |manager: Manager| manager.controller(Controller::new(publishes_events, ()));
    let report = simulate(register).run();
    assert!(report.failures.is_empty(), "{report}");
}

#[test]
fn programs_may_wait_for_signals() {
    let simulation = Simulation::of_client(|client| async move {
        let widgets = Api::<Widget>::all(client);
        let controller = kube::runtime::Controller::new(widgets, kube::runtime::watcher::Config::default());
        let running = controller.shutdown_on_signal().run(
            |_, _| async { Ok(kube::runtime::controller::Action::await_change()) },
            |_, _: &std::convert::Infallible, _| kube::runtime::controller::Action::await_change(),
            Arc::new(()),
        );
        futures::StreamExt::for_each(running, |_| std::future::ready(())).await;
    });
    let report = simulation
        .crd(Widget::crd())
        .declare(&widget())
        .histories(20)
        .run();
    assert!(report.failures.is_empty(), "{report}");
}

#[test]
fn early_return_is_found_by_a_crash_between_two_writes() {
    let report = simulate(register_early_return).run();
    let mut failures = report.failures.iter();
    let failure = failures.find(|failure| failure.oracle == Oracle::EndState);
    let failure = failure.unwrap_or_else(|| panic!("{report}"));
    assert_eq!(
        failure.message,
        "after step 1, the state is another:\n    services default/a is missing"
    );
    let [perturbation] = &failure.history.perturbations[..] else {
        panic!("{report}")
    };
    assert_eq!(
        perturbation.to_string(),
        "the operator dies after `patch configmaps default/a #1`"
    );
}

#[test]
fn child_without_owner_remains() {
    let report = simulate(register_orphan).run();
    let failure = report.failures.first().expect("a failure");
    assert_eq!(failure.oracle, Oracle::Deletion, "{report}");
}
