//! Tasks, and controllers that run on every replica.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use rbuilder::testing::eventually;
use rbuilder::{Action, Controller, Ctx, Error, Manager, ManagerArgs, Result, Task};

use serde_json::json;

use crate::support::{Memo, Operator, Place, SOON, Seen, Server, copy, memo, on_both_servers};

on_both_servers!(
    every_replica_runs_without_the_lease,
    only_the_leader_writes,
    failed_task_stops_the_manager,
    events_are_queued_until_the_manager_starts,
);

async fn look(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    ctx.note(&memo.name_any());
    Ok(Action::await_change())
}

/// Returns a manager that takes part in leader election.
fn elected(place: &Place) -> Manager {
    let args = ManagerArgs {
        leader_elect: true,
        leader_election_namespace: Some(place.namespace.clone()),
        watch_namespace: place.namespace.clone(),
        ..ManagerArgs::for_tests()
    };
    Manager::with_client("tasks.example.com", place.env.client(), args)
}

/// Starts a manager, and waits until it's the leader.
async fn start_leader(place: &Place) -> Operator {
    let leads = Arc::new(AtomicBool::new(false));
    let leading = Arc::clone(&leads);
    let leader = Operator::start(elected(place).task(Task::new("leader", move |_| async move {
        leading.store(true, SeqCst);
        Ok::<_, Error>(())
    })));
    eventually(SOON, || async { leads.load(SeqCst) }).await;
    leader
}

/// Records when the task is started, and when it's asked to shut down.
fn noted(name: &str, seen: &Seen) -> Task {
    let (started, seen) = (name.to_owned(), seen.clone());
    Task::new(name, move |shutdown| async move {
        seen.note(&started);
        shutdown.requested().await;
        seen.note(&format!("{started} told to end"));
        Ok::<_, Error>(())
    })
}

/// A replica without leadership only runs the tasks and controllers that run on every replica.
async fn every_replica_runs_without_the_lease(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("note", "1")).await;
    let leader = start_leader(&place).await;

    let (everywhere, waiting) = (Seen::default(), Seen::default());
    let standby = elected(&place)
        .controller(
            Controller::new(look, everywhere.clone())
                .named("everywhere")
                .on_every_replica(),
        )
        .controller(Controller::new(look, waiting.clone()))
        .task(noted("everywhere", &everywhere).on_every_replica())
        .task(noted("waiting", &waiting));
    let standby = Operator::start(standby);
    eventually(SOON, || async {
        everywhere.count("note") == 1 && everywhere.count("everywhere") == 1
    })
    .await;
    assert_eq!((waiting.count("note"), waiting.count("waiting")), (0, 0));

    leader.stop().await.unwrap();
    eventually(SOON, || async {
        waiting.count("note") == 1 && waiting.count("waiting") == 1
    })
    .await;
    assert_eq!((everywhere.count("note"), everywhere.count("everywhere")), (1, 1));
    standby.stop().await.unwrap();
    assert_eq!(everywhere.count("everywhere told to end"), 1);
    assert_eq!(waiting.count("waiting told to end"), 1);
}

/// The client for leaders rejects writes before the lease is acquired and after it is released.
/// Controllers that run on every replica can always write.
async fn only_the_leader_writes(server: Server) {
    let place = Place::new(server).await;
    let leader = start_leader(&place).await;
    place.create(memo("note", "1")).await;

    let waiting = Seen::default();
    let standby = elected(&place)
        .controller(
            Controller::new(copy, Seen::default())
                .named("everywhere")
                .on_every_replica(),
        )
        .task(noted("waiting", &waiting));
    let maps: Api<ConfigMap> = Api::namespaced(standby.leader_client(), &place.namespace);
    let write = async || {
        let params = PatchParams::apply("test").force();
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "led" } });
        let written = maps.patch("led", &params, &Patch::Apply(map)).await;
        written.map(drop).map_err(|error| error.to_string())
    };
    let standby = Operator::start(standby);
    eventually(SOON, || async { place.copied("note").await.is_some() }).await;
    let refused = write().await.unwrap_err();
    assert!(
        refused.contains("`tasks.example.com` is not held yet"),
        "{refused}"
    );
    assert_eq!(maps.get_opt("led").await.unwrap(), None, "reads pass");

    leader.stop().await.unwrap();
    eventually(SOON, || async { waiting.count("waiting") == 1 }).await;
    write().await.unwrap();
    standby.stop().await.unwrap();
    let refused = write().await.unwrap_err();
    assert!(
        refused.contains("`tasks.example.com` is no longer held"),
        "{refused}"
    );
}

/// A task that fails or panics stops the manager, with an error that contains its name. A task may
/// finish early.
async fn failed_task_stops_the_manager(server: Server) {
    let place = Place::new(server).await;
    async fn ends_with(place: &Place, task: Task) -> String {
        let done = Task::new("done", |_| async { Ok::<_, Error>(()) });
        let manager = place.manager().task(done).task(task);
        let ended = manager.start_until(std::future::pending()).await;
        ended.unwrap_err().to_string()
    }
    let fails = Task::new("sweeper", |_| async { Err("no broom") });
    assert_eq!(ends_with(&place, fails).await, "task sweeper stopped: no broom");
    async fn trip() -> Result<()> {
        panic!("tripped")
    }
    let panics = Task::new("sweeper", |_| trip());
    let said = ends_with(&place, panics).await;
    assert!(
        said.starts_with("task sweeper stopped: ") && said.contains("tripped"),
        "{said}"
    );
}

/// Returns the sorted reasons of all events that `reporter` has recorded about a memo.
async fn recorded(place: &Place, reporter: &str, about: &str) -> Vec<String> {
    let events = place.api::<Event>().list(&ListParams::default()).await.unwrap();
    let recorded = events.into_iter().filter(|event| {
        let regarding = event
            .regarding
            .as_ref()
            .and_then(|regarding| regarding.name.as_deref());
        event.reporting_controller.as_deref() == Some(reporter) && regarding == Some(about)
    });
    let mut reasons: Vec<String> = recorded.filter_map(|event| event.reason).collect();
    reasons.sort_unstable();
    reasons
}

/// Events are queued until the manager is started. Replicas without leadership send them, too. On
/// shutdown, the remaining ones are sent.
async fn events_are_queued_until_the_manager_starts(server: Server) {
    let place = Place::new(server).await;
    let note = place.create(memo("note", "1")).await;
    let leader = start_leader(&place).await;

    let mut standby = elected(&place);
    let events = standby.events("watchdog");
    events.warning(&note, "Early", "Record", "before the manager starts");
    let (of_task, of_note) = (events.clone(), note.clone());
    let task = Task::new("watchdog", |shutdown| async move {
        of_task.normal(&of_note, "Started", "Record", "from a task");
        shutdown.requested().await;
        of_task.normal(&of_note, "Stopped", "Record", "at shutdown");
        Ok::<_, Error>(())
    });
    let standby = Operator::start(standby.task(task.on_every_replica()));
    eventually(SOON, || async {
        recorded(&place, "watchdog", "note").await == ["Early", "Started"]
    })
    .await;
    standby.stop().await.unwrap();
    assert_eq!(
        recorded(&place, "watchdog", "note").await,
        ["Early", "Started", "Stopped"]
    );
    events.normal(
        &note,
        "Late",
        "Record",
        "nobody sends it, and nobody waits for it",
    );
    leader.stop().await.unwrap();

    // Dropping a recorder is fine.
    let mut manager = place.manager();
    drop(manager.events("dropped"));
    let seen = Seen::default();
    let operator = Operator::start(manager.task(noted("running", &seen)));
    eventually(SOON, || async { seen.count("running") == 1 }).await;
    operator.stop().await.unwrap();
}
