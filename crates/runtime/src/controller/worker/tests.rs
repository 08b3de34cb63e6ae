//! Tests of workers and their queue. There is no API server.

use std::sync::atomic::AtomicUsize;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::core::Status;
use kube::core::response::{StatusCause, StatusDetails};
use serde_json::json;

use super::*;
use crate::cache::Selection;
use crate::controller::box_reconcile;
use crate::logging::LogBuffer;
use crate::metrics::Metrics;
use crate::object::Kind;
use crate::queue::{LOW, NORMAL};
use crate::shards::RangeSet;

fn new_worker(fence: Option<Fence>) -> Arc<Worker<ConfigMap, AtomicUsize>> {
    let nowhere = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
    let client = Client::try_from(nowhere).unwrap();
    let ctx = Ctx::new(client, "test", AtomicUsize::new(0)).caching([new_map()]);
    let metrics = Metrics::new();
    let reconcile = |_, ctx: Ctx<AtomicUsize>| async move {
        ctx.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Error>(Action::await_change())
    };
    Arc::new(Worker {
        cache: ctx.caches().of(&Kind::of_type(), &Selection::all()),
        queue: Arc::new(Workqueue::new(metrics.queue("test"))),
        deleted: Arc::default(),
        shards: None,
        shard_by: ShardBy::default(),
        departures: Arc::new(Departures::new(None, Vec::new())),
        conflicts: Mutex::default(),
        fence,
        timeout: None,
        recover_panics: true,
        handlers: Handlers {
            reconcile: box_reconcile(reconcile),
            reconciles_terminating: false,
            finalizers: Vec::new(),
            on_deleted: None,
            on_undecodable: None,
        },
        metrics: metrics.controller("test", 1),
        ctx,
    })
}

fn new_map() -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some("any".to_owned());
    map
}

#[tokio::test(start_paused = true)]
async fn worker_without_the_lease_returns_its_key_and_takes_no_more() {
    let fence = Fence::new("operator");
    let worker = new_worker(Some(fence));
    worker.queue.add(Key::of(&new_map()), NORMAL);
    let working = tokio::spawn(Arc::clone(&worker).work(Arc::default()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(worker.ctx.load(Ordering::Relaxed), 0);
    assert_eq!(worker.queue.depth(), 1);
    assert!(
        !working.is_finished(),
        "an end would be a failure of the controller"
    );
    worker.queue.close();
    working.await.unwrap().unwrap();
    assert_eq!(worker.ctx.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn worker_on_every_replica_needs_no_lease() {
    let worker = new_worker(None);
    worker.queue.add(Key::of(&new_map()), NORMAL);
    let working = tokio::spawn(Arc::clone(&worker).work(Arc::default()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(worker.ctx.load(Ordering::Relaxed), 1);
    worker.queue.close();
    working.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_retry_keeps_the_priority_of_its_key() {
    for outcome in [
        Outcome::Failed(Error::new("no")),
        new_conflict(),
        Outcome::Panicked("no".to_owned()),
        Outcome::TimedOut(Duration::ZERO),
        Outcome::Done(Action::requeue(Duration::from_millis(1))),
    ] {
        let (worker, key) = (new_worker(None), Key::of(&new_map()));
        worker.queue.add(key.clone(), LOW);
        worker.queue.next().await.unwrap();
        let described = format!("{outcome:?}");
        worker.requeue(&key, outcome);
        worker.queue.done(&key);
        worker.queue.next().await.unwrap();
        assert_eq!(worker.queue.taken_priority(&key), LOW, "{described}");
    }
}

#[tokio::test(start_paused = true)]
async fn key_of_a_draining_range_waits_with_its_priority() {
    let shards = Shards::new();
    shards.set_serving(RangeSet::empty(1));
    shards.set_owned(RangeSet::of(1, |_| true));
    let mut worker = Arc::into_inner(new_worker(None)).expect("nobody else has it");
    worker.shards = Some(shards.clone());
    let key = Key::of(&new_map());
    worker.deleted.lock().unwrap().insert(key.clone(), 0);
    worker.queue.add(key.clone(), LOW);
    worker.queue.next().await.unwrap();
    assert!(worker.enter_shard(&key).is_err());
    worker.queue.next().await.unwrap();
    assert_eq!(worker.queue.taken_priority(&key), LOW);
    shards.set_serving(RangeSet::of(1, |_| true));
    assert!(worker.enter_shard(&key).is_ok_and(|guard| guard.is_some()));
}

fn new_conflict() -> Outcome {
    let status = Status::failure("the object has been modified", "Conflict").with_code(409);
    Outcome::Failed(kube::Error::Api(status.boxed()).into())
}

fn new_field_manager_conflict() -> Outcome {
    let details: StatusDetails = serde_json::from_value(json!({ "causes": [] })).unwrap();
    let cause = StatusCause {
        reason: "FieldManagerConflict".to_owned(),
        message: "conflict with \"kubectl\" using v1".to_owned(),
        field: ".data.text".to_owned(),
    };
    let details = StatusDetails {
        causes: vec![cause],
        ..details
    };
    let status = Status::failure("Apply failed with 1 conflict", "Conflict").with_code(409);
    Outcome::Failed(kube::Error::Api(status.with_details(details).boxed()).into())
}

/// Logs the given outcomes for one object. Returns their log levels, and the complete log.
fn log_levels(outcomes: impl IntoIterator<Item = Outcome>) -> (Vec<String>, String) {
    let log = LogBuffer::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .without_time()
        .with_writer(log.writers())
        .finish();
    let worker = new_worker(None);
    tracing::subscriber::with_default(subscriber, || {
        for outcome in outcomes {
            worker.requeue(&Key::of(&new_map()), outcome);
        }
    });
    let text = log.text();
    let levels = text.lines().filter_map(|line| line.split_whitespace().next());
    (levels.map(str::to_owned).collect(), text)
}

#[tokio::test(start_paused = true)]
async fn fifth_conflict_in_a_row_is_an_error() {
    let (levels, log) = log_levels((0..6).map(|_| new_conflict()));
    assert_eq!(
        levels,
        ["DEBUG", "DEBUG", "DEBUG", "DEBUG", "ERROR", "ERROR"],
        "{log}"
    );
    let last = log.lines().last().unwrap();
    assert!(
        last.contains("reconcile failed, the object keeps being modified"),
        "{last}"
    );
    assert!(last.contains("conflicts=6"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn other_outcomes_reset_the_count_of_conflicts() {
    let between = [
        Outcome::Done(Action::await_change()),
        Outcome::Failed(Error::terminal("never")),
    ];
    for other in between {
        let four = || (0..4).map(|_| new_conflict());
        let (levels, log) = log_levels(four().chain([other]).chain(four()));
        assert_eq!(
            levels.iter().filter(|level| *level == "DEBUG").count(),
            8,
            "{log}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn field_manager_conflict_is_an_error_at_once() {
    let (levels, log) = log_levels([new_field_manager_conflict()]);
    assert_eq!(levels, ["ERROR"], "{log}");
    assert!(
        log.contains("reconcile failed, another field manager owns a field"),
        "{log}"
    );
}
