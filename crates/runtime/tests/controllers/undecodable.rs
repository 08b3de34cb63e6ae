//! Objects that cannot be decoded into their Rust type, which must not affect other objects.

use std::io::Write;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::events::v1::Event;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, CustomResource, Resource, ResourceExt};
use rbuilder::testing::eventually;
use rbuilder::{Action, Controller, Ctx, ObjectRef, Result, Undecodable, Watch};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{Operator, Place, SOON, Seen, Server, config_map, on_both_servers};

on_both_servers!(
    undecodable_object_does_not_stop_others,
    undecodable_object_is_logged_recorded_and_counted,
    last_decodable_version_is_not_reconciled,
    deletion_of_an_undecodable_object_is_delivered,
    hook_can_repair_an_undecodable_object,
    owner_of_an_undecodable_child_is_reconciled,
);

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "controllers.example.com",
    version = "v1",
    kind = "Timer",
    namespaced,
    schema = "disabled"
)]
struct TimerSpec {
    every: kube::core::Duration,
}

async fn count(timer: Arc<Timer>, ctx: Ctx<Seen>) -> Result {
    ctx.note(&timer.name_any());
    Ok(Action::await_change())
}

/// Timers as written by other programs.
struct Timers(Api<DynamicObject>);

impl Timers {
    fn of(place: &Place) -> Self {
        let resource = ApiResource::erase::<Timer>(&());
        Self(Api::namespaced_with(
            place.env.client(),
            &place.namespace,
            &resource,
        ))
    }

    async fn create(&self, name: &str, every: &str) {
        let resource = ApiResource::erase::<Timer>(&());
        let timer = DynamicObject::new(name, &resource).data(json!({ "spec": { "every": every } }));
        self.0.create(&PostParams::default(), &timer).await.unwrap();
    }

    async fn change(&self, name: &str, every: &str) {
        self.patch(name, json!({ "spec": { "every": every } })).await;
    }

    async fn patch(&self, name: &str, patch: serde_json::Value) {
        let patch = Patch::Merge(patch);
        self.0.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn delete(&self, name: &str) {
        self.0.delete(name, &DeleteParams::default()).await.unwrap();
    }
}

async fn is_seen(seen: &Seen, name: &str, times: usize) {
    eventually(SOON, || async { seen.count(name) >= times }).await;
}

async fn undecodable_object_does_not_stop_others(server: Server) {
    let place = Place::new(server).await;
    let timers = Timers::of(&place);
    for (name, every) in [("a", "1h"), ("bad", "5 minutes"), ("c", "1m30s")] {
        timers.create(name, every).await;
    }
    let seen = Seen::default();
    let operator = Operator::start(place.manager().controller(Controller::new(count, seen.clone())));
    is_seen(&seen, "a", 1).await;
    is_seen(&seen, "c", 1).await;
    // Other objects aren't delayed while this one keeps changing.
    for round in 0..20 {
        timers.change("bad", &format!("{round} minutes")).await;
        timers.change("a", &format!("{}h", round + 2)).await;
    }
    timers.create("late", "1h").await;
    is_seen(&seen, "late", 1).await;
    if let Server::Fake(server) = &place.env {
        server.expire_watches();
        timers.create("listed", "1h").await;
        is_seen(&seen, "listed", 1).await;
    }
    timers.change("bad", "5m").await;
    is_seen(&seen, "bad", 1).await;
    operator.stop().await.unwrap();
}

/// What this thread logs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        log.lines().map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(buffer)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn assert_logged_once(lines: &[String], namespace: &str) {
    let errors: Vec<&String> = lines.iter().filter(|line| line.contains("ERROR")).collect();
    let [error] = errors.as_slice() else {
        panic!("one error, not {errors:#?}")
    };
    let object = format!("{namespace}/bad");
    for part in ["Timer (controllers.example.com/v1)", &object, ".spec.every"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    let bodies: Vec<&String> = lines.iter().filter(|line| line.contains("apiVersion")).collect();
    assert!(bodies.is_empty(), "{bodies:#?}");
}

async fn undecodable_object_is_logged_recorded_and_counted(server: Server) {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let place = Place::new(server).await;
    let timers = Timers::of(&place);
    timers.create("bad", "5 minutes").await;
    timers.create("good", "1h").await;
    let seen = Seen::default();
    let manager = place.manager().controller(Controller::new(count, seen.clone()));
    let metrics = manager.metrics().clone();
    let operator = Operator::start(manager);
    is_seen(&seen, "good", 1).await;
    timers
        .patch("bad", json!({ "metadata": { "labels": { "touched": "yes" } } }))
        .await;

    let events: Api<Event> = Api::namespaced(place.env.client(), &place.namespace);
    let undecodable = || async {
        let events = events.list(&ListParams::default()).await.unwrap();
        let about_it = |event: &Event| event.reason.as_deref() == Some("Undecodable");
        events.items.into_iter().filter(about_it).collect::<Vec<_>>()
    };
    eventually(SOON, || async { !undecodable().await.is_empty() }).await;
    timers.create("last", "1h").await;
    is_seen(&seen, "last", 1).await;

    let events = undecodable().await;
    let [event] = events.as_slice() else {
        panic!("one event, not {events:?}")
    };
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(event.regarding.as_ref().unwrap().name.as_deref(), Some("bad"));
    let note = event.note.as_deref().unwrap();
    assert!(note.contains(".spec.every: "), "{note}");

    let metric = "rbuilder_undecodable_objects{kind=\"Timer.controllers.example.com\",cluster=\"\"} 1\n";
    assert!(metrics.text().contains(metric), "{}", metrics.text());

    // A real server involves more than one thread, so some lines are missing.
    if matches!(place.env, Server::Fake(_)) {
        assert_logged_once(&log.lines(), &place.namespace);
    }
    operator.stop().await.unwrap();
}

async fn last_decodable_version_is_not_reconciled(server: Server) {
    let place = Place::new(server).await;
    let timers = Timers::of(&place);
    timers.create("timer", "1h").await;
    let seen = Seen::default();
    async fn look(timer: Arc<Timer>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&timer.spec.every.to_string());
        Ok(Action::await_change())
    }
    let (trigger, triggers) = rbuilder::trigger::channel();
    let controller = Controller::new(look, seen.clone()).triggers(triggers);
    let manager = place.manager().controller(controller);
    let metrics = manager.metrics().clone();
    let operator = Operator::start(manager);
    is_seen(&seen, "3600s", 1).await;
    timers.change("timer", "an hour").await;
    let metric = "rbuilder_undecodable_objects{kind=\"Timer.controllers.example.com\",cluster=\"\"} 1\n";
    eventually(SOON, || async { metrics.text().contains(metric) }).await;
    let before = seen.count("3600s");
    trigger
        .send(ObjectRef::new("timer").within(&place.namespace))
        .await;
    timers.change("timer", "2h").await;
    is_seen(&seen, "7200s", 1).await;
    assert_eq!(seen.count("3600s"), before);
    operator.stop().await.unwrap();
}

async fn deletion_of_an_undecodable_object_is_delivered(server: Server) {
    let place = Place::new(server).await;
    let timers = Timers::of(&place);
    timers.create("bad", "5 minutes").await;
    timers.create("good", "1h").await;
    let seen = Seen::default();
    async fn forget(timer: ObjectRef<Timer>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&format!("{} is gone", timer.name));
        Ok(Action::await_change())
    }
    let controller = Controller::new(count, seen.clone()).on_deleted(forget);
    let operator = Operator::start(place.manager().controller(controller));
    is_seen(&seen, "good", 1).await;
    timers.delete("bad").await;
    is_seen(&seen, "bad is gone", 1).await;
    assert_eq!(seen.count("bad"), 0);
    operator.stop().await.unwrap();
}

async fn hook_can_repair_an_undecodable_object(server: Server) {
    let place = Place::new(server).await;
    let timers = Timers::of(&place);
    timers.create("bad", "5 minutes").await;
    let seen = Seen::default();
    async fn repair(timer: Arc<Undecodable>, ctx: Ctx<Seen>) -> Result {
        let meta = timer.metadata();
        let name = meta.name.clone().unwrap_or_default();
        ctx.note(&format!("{name}: {}", timer.field()));
        let namespace = meta.namespace.clone().unwrap_or_default();
        let timers: Api<Timer> = Api::namespaced(ctx.client(), &namespace);
        let patch = Patch::Merge(json!({ "spec": { "every": "5m" } }));
        timers.patch(&name, &PatchParams::default(), &patch).await?;
        Ok(Action::await_change())
    }
    let controller = Controller::new(count, seen.clone()).on_undecodable(repair);
    let operator = Operator::start(place.manager().controller(controller));
    is_seen(&seen, "bad: .spec.every", 1).await;
    is_seen(&seen, "bad", 1).await;
    operator.stop().await.unwrap();
}

async fn owner_of_an_undecodable_child_is_reconciled(server: Server) {
    let place = Place::new(server).await;
    let maps = place.api::<k8s_openapi::api::core::v1::ConfigMap>();
    let owner = maps
        .create(&PostParams::default(), &config_map("owner", ""))
        .await
        .unwrap();
    let timers = Timers::of(&place);
    timers.create("child", "1h").await;
    let reference = owner.controller_owner_ref(&()).unwrap();
    timers
        .patch("child", json!({ "metadata": { "ownerReferences": [reference] } }))
        .await;
    let seen = Seen::default();
    async fn look(map: Arc<k8s_openapi::api::core::v1::ConfigMap>, ctx: Ctx<Seen>) -> Result {
        let timers = ctx.cached::<Timer>()?;
        ctx.note(&format!(
            "{}: {} decoded, {} not",
            map.name_any(),
            timers.len(),
            timers.undecodable().len()
        ));
        Ok(Action::await_change())
    }
    let controller = Controller::new(look, seen.clone()).watch(Watch::<Timer>::owned());
    let operator = Operator::start(place.manager().controller(controller));
    is_seen(&seen, "owner: 1 decoded, 0 not", 1).await;
    timers.change("child", "an hour").await;
    is_seen(&seen, "owner: 0 decoded, 1 not", 1).await;
    timers.delete("child").await;
    is_seen(&seen, "owner: 0 decoded, 0 not", 1).await;
    operator.stop().await.unwrap();
}
