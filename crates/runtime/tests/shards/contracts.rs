//! A controller's promises must hold while ranges move, i.e. when a replica joins, stops or
//! crashes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use rbuilder::fake::{Fault, Verb};
use rbuilder::trigger::{Trigger, channel};
use rbuilder::{Error, ObjectRef, Request, Selection, Task, Unselected};
use tokio::time::{Instant, sleep};

use crate::fleet::{Done, Fleet, Maps, SELECTED, clean_up, count_names, forget, namespace_of};

const SECOND: Duration = Duration::from_secs(1);
/// Maximum time for objects to be without a replica after a crash.
const TAKEN_OVER: Duration = Duration::from_secs(21);
/// Maximum time for objects to be without a replica in all other cases.
const HANDED_OVER: Duration = Duration::from_secs(5);
/// Ranges have stopped moving by then.
const SETTLED: Duration = Duration::from_secs(60);
const OBJECTS: usize = 24;
/// Interval between deletions or other changes. In total, they take longer than a takeover.
const PACE: Duration = Duration::from_millis(900);

/// Why ranges move.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Move {
    Join,
    Stop,
    Crash,
}

impl Move {
    const ALL: [Self; 3] = [Self::Join, Self::Stop, Self::Crash];

    fn happen(self, fleet: &mut Fleet) {
        match self {
            Self::Join => fleet.start(),
            Self::Stop => drop(fleet.stop(1)),
            Self::Crash => fleet.crash(1),
        }
    }

    /// Maximum time for an object to be without a replica.
    fn gap(self) -> Duration {
        match self {
            Self::Join | Self::Stop => HANDED_OVER,
            Self::Crash => TAKEN_OVER,
        }
    }
}

/// Returns all reasons for ranges to move, each with and without shard selectors in the API server.
fn cases() -> impl Iterator<Item = (Move, bool)> {
    Move::ALL
        .into_iter()
        .flat_map(|moved| [(moved, true), (moved, false)])
}

/// Starts three replicas, and waits until some objects are reconciled. Also returns their names.
async fn reconciled(sharding: bool, configure: impl Fn(Maps) -> Maps + 'static) -> (Fleet, Vec<String>) {
    let fleet = Fleet::configured(3, sharding, configure).await;
    let names = fleet.create_many(OBJECTS).await;
    fleet.reconciled().await;
    // Creating a child reconciles its owner once more.
    sleep(5 * SECOND).await;
    fleet.record.lock().unwrap().clear();
    (fleet, names)
}

fn with_finalizer(controller: Maps) -> Maps {
    controller.finalizer("example.com/clean-up", clean_up)
}

fn selecting(controller: Maps) -> Maps {
    with_finalizer(controller)
        .selecting(Selection::all().labels(SELECTED))
        .when_unselected(Unselected::CleanUp)
}

/// Returns the names of all objects with a finalizer.
async fn held(fleet: &Fleet) -> BTreeSet<String> {
    let objects = fleet.objects().await.into_iter();
    let held = objects.filter(|object| !object.finalizers().is_empty());
    held.map(|object| object.name_any()).collect()
}

#[tokio::test(start_paused = true)]
async fn deleted_objects_are_cleaned_up_once() {
    for (moved, sharding) in cases() {
        let mut fleet = Fleet::new(sharding);
        fleet.work = SECOND;
        fleet.configure = Box::new(with_finalizer);
        fleet.start_many(3).await;
        let names = fleet.create_many(OBJECTS).await;
        fleet.reconciled().await;
        sleep(5 * SECOND).await;
        moved.happen(&mut fleet);
        for name in &names {
            fleet.delete(name).await;
            sleep(PACE).await;
        }
        sleep(SETTLED).await;
        fleet.check();
        assert_eq!(held(&fleet).await, BTreeSet::new(), "{moved:?}");
        let cleanups = count_names(&fleet.record.lock().unwrap().cleanups);
        assert_eq!(cleanups.len(), OBJECTS, "{moved:?}: {cleanups:?}");
        // A crashed replica may not have removed the finalizer after the cleanup.
        let is_once = cleanups.values().all(|count| *count == 1);
        assert!(is_once || moved == Move::Crash, "{moved:?}: {cleanups:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn objects_that_leave_the_selection_are_cleaned_up() {
    for (moved, sharding) in cases() {
        let (mut fleet, names) = reconciled(sharding, selecting).await;
        let (leaving, staying) = names.split_at(OBJECTS * 3 / 4);
        moved.happen(&mut fleet);
        for name in leaving {
            fleet.unselect(name).await;
            sleep(PACE).await;
        }
        sleep(SETTLED).await;
        fleet.check();
        assert_eq!(held(&fleet).await, staying.iter().cloned().collect(), "{moved:?}");
        let cleanups = count_names(&fleet.record.lock().unwrap().cleanups);
        assert_eq!(cleanups.len(), leaving.len(), "{moved:?}: {cleanups:?}");
    }
}

/// The previous replica no longer receives events for its range, and the new one doesn't receive
/// them yet.
#[tokio::test(start_paused = true)]
async fn object_that_leaves_the_selection_before_its_range_is_listed_is_cleaned_up() {
    let mut fleet = Fleet::configured(1, true, selecting).await;
    let names = fleet.create_many(OBJECTS).await;
    fleet.reconciled().await;
    let lists = Fault::delay(PACE * OBJECTS as u32).verb(Verb::List);
    fleet.server.inject(lists.kind::<Secret>().always());
    fleet.start();
    for name in &names {
        sleep(PACE).await;
        fleet.unselect(name).await;
    }
    fleet.server.heal();
    sleep(SETTLED).await;
    fleet.check();
    assert_eq!(held(&fleet).await, BTreeSet::new());
}

#[tokio::test(start_paused = true)]
async fn deletion_is_reported_at_most_once_and_always_while_ranges_stay() {
    for (moved, sharding) in cases() {
        let (mut fleet, names) = reconciled(sharding, |controller| controller.on_deleted(forget)).await;
        let (first, second) = names.split_at(OBJECTS / 2);
        moved.happen(&mut fleet);
        for name in first {
            fleet.delete(name).await;
            sleep(PACE).await;
        }
        sleep(SETTLED).await;
        let reported = count_names(&fleet.record.lock().unwrap().forgotten);
        let is_once = |(name, count): (&String, &usize)| first.contains(name) && *count == 1;
        assert!(reported.iter().all(is_once), "{moved:?}: {reported:?}");

        fleet.record.lock().unwrap().clear();
        for name in second {
            fleet.delete(name).await;
        }
        sleep(5 * SECOND).await;
        let reported = count_names(&fleet.record.lock().unwrap().forgotten);
        let expected: BTreeMap<_, _> = second.iter().map(|name| (name.clone(), 1)).collect();
        assert_eq!(reported, expected, "{moved:?}");
    }
}

/// Returns the longest time between two reconciles of each object since `start`.
fn longest_gaps(reconciles: &[Done], start: Instant) -> BTreeMap<String, Duration> {
    let mut last: BTreeMap<&str, Instant> = BTreeMap::new();
    let mut gaps: BTreeMap<String, Duration> = BTreeMap::new();
    for done in reconciles {
        let before = last.insert(&done.name, done.at).unwrap_or(start);
        let gap = gaps.entry(done.name.clone()).or_default();
        *gap = (*gap).max(done.at - before);
    }
    gaps
}

/// The triggers of all replicas. Sources send everything to each of them.
type Triggers = Arc<Mutex<Vec<Trigger<ConfigMap>>>>;

fn send_everywhere(triggers: &Triggers, name: &str, delay: Duration) {
    for trigger in triggers.lock().unwrap().iter() {
        let object = ObjectRef::new(name).within(&namespace_of(name));
        // Fails if the replica no longer exists.
        trigger.try_send(Request::new(object).after(delay));
    }
}

#[tokio::test(start_paused = true)]
async fn trigger_reconciles_its_object_in_one_replica() {
    for (moved, sharding) in cases() {
        for delay in [Duration::ZERO, 10 * SECOND] {
            let triggers = Triggers::default();
            let added = Arc::clone(&triggers);
            let (mut fleet, names) = reconciled(sharding, move |controller| {
                let (trigger, requests) = channel();
                added.lock().unwrap().push(trigger);
                controller.triggers(requests)
            })
            .await;
            // Longer than the delay, because a waiting object isn't enqueued again.
            let pause = SECOND.max(delay * 3 / 2);
            moved.happen(&mut fleet);
            let started = Instant::now();
            while started.elapsed() < SETTLED / 2 {
                for name in &names {
                    send_everywhere(&triggers, name, delay);
                }
                sleep(pause).await;
            }
            let gaps = longest_gaps(&fleet.record.lock().unwrap().reconciles, started);
            let allowed = pause + delay + moved.gap();
            assert_eq!(gaps.len(), OBJECTS);
            assert!(
                gaps.values().all(|gap| *gap <= allowed),
                "{moved:?} {delay:?}: {gaps:?}"
            );

            fleet.record.lock().unwrap().clear();
            for name in &names {
                send_everywhere(&triggers, name, delay);
            }
            sleep(delay + SECOND).await;
            let counts = count_names(&fleet.record.lock().unwrap().reconciles);
            assert!(
                counts.len() == OBJECTS && counts.values().all(|count| *count == 1),
                "{moved:?} {delay:?}: {counts:?}"
            );
            fleet.check();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn objects_are_resynced_by_one_replica() {
    let period = 20 * SECOND;
    // Jitter included.
    let longest = period + period / 10 + SECOND;
    for (moved, sharding) in cases() {
        let (mut fleet, _) = reconciled(sharding, move |controller| controller.resync_every(period)).await;
        let started = Instant::now();
        moved.happen(&mut fleet);
        sleep(2 * SETTLED).await;
        let gaps = longest_gaps(&fleet.record.lock().unwrap().reconciles, started);
        assert_eq!(gaps.len(), OBJECTS);
        let allowed = longest + moved.gap();
        assert!(gaps.values().all(|gap| *gap <= allowed), "{moved:?}: {gaps:?}");

        fleet.record.lock().unwrap().clear();
        sleep(longest * 3).await;
        let counts = count_names(&fleet.record.lock().unwrap().reconciles);
        assert!(
            counts.len() == OBJECTS && counts.values().all(|count| (2..=4).contains(count)),
            "{moved:?}: {counts:?}"
        );
        fleet.check();
    }
}

#[tokio::test(start_paused = true)]
async fn change_overtakes_the_objects_of_a_range_that_was_acquired() {
    let mut fleet = Fleet::new(true);
    fleet.work = SECOND / 2;
    fleet.configure = Box::new(|controller| controller.concurrency(1));
    fleet.start_many(2).await;
    fleet.create_many(40).await;
    fleet.reconciled().await;
    sleep(SETTLED).await;
    fleet.record.lock().unwrap().reconciles.clear();
    fleet.crash(1);
    while fleet.record.lock().unwrap().reconciles.is_empty() {
        sleep(SECOND / 10).await;
    }
    let crashed = 2;
    let waiting: Vec<String> = {
        let record = fleet.record.lock().unwrap();
        let last = record.last.iter();
        let waiting = last.filter(|(_, (_, replica))| *replica == crashed);
        waiting.map(|(name, _)| name.clone()).collect()
    };
    assert!(waiting.len() > 8, "{waiting:?}");
    for name in waiting.iter().rev().take(3) {
        fleet.write(name, "urgent").await;
        let sent = Instant::now();
        while fleet.record.lock().unwrap().last[name].0 != "urgent" {
            sleep(SECOND / 10).await;
        }
        // It may have to wait for the previous reconcile, plus the time to start.
        assert!(sent.elapsed() <= SECOND, "{:?}", sent.elapsed());
    }
    fleet.check();
}

#[tokio::test(start_paused = true)]
async fn backoff_of_objects_that_stay_is_not_reset() {
    for (moved, sharding) in cases() {
        let configure = |controller: Maps| controller.backoff(SECOND, 1000 * SECOND);
        let mut fleet = Fleet::configured(2, sharding, configure).await;
        fleet.record.lock().unwrap().failing =
            (0..OBJECTS).map(|number| format!("object-{number}")).collect();
        fleet.create_many(OBJECTS).await;
        sleep(10 * SECOND).await;
        moved.happen(&mut fleet);
        sleep(100 * SECOND).await;
        fleet.check();
        let mut attempts: BTreeMap<(String, usize), Vec<Instant>> = BTreeMap::new();
        for done in &fleet.record.lock().unwrap().reconciles {
            let own = attempts.entry((done.name.clone(), done.replica)).or_default();
            own.push(done.at);
        }
        let has_moved = attempts.len() > OBJECTS;
        assert!(has_moved, "{moved:?}");
        for (object, attempts) in attempts {
            let gaps: Vec<u64> = attempts
                .windows(2)
                .map(|pair| (pair[1] - pair[0]).as_secs())
                .collect();
            let expected: Vec<u64> = (0..gaps.len()).map(|failures| 1 << failures).collect();
            assert_eq!(gaps, expected, "{moved:?}: {object:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn replica_that_takes_over_keeps_its_rate_limit() {
    let configure =
        |controller: Maps| controller.rate_limiter(rbuilder::rate_limiter::TokenBucket::new(2.0, 1));
    let mut fleet = Fleet::configured(2, true, configure).await;
    fleet.record.lock().unwrap().failing = (0..OBJECTS).map(|number| format!("object-{number}")).collect();
    fleet.create_many(OBJECTS).await;
    sleep(20 * SECOND).await;
    fleet.crash(1);
    sleep(TAKEN_OVER + 5 * SECOND).await;
    fleet.record.lock().unwrap().clear();
    sleep(30 * SECOND).await;
    let record = fleet.record.lock().unwrap();
    let (retries, objects) = (record.reconciles.len(), count_names(&record.reconciles).len());
    assert_eq!(objects, OBJECTS, "every object is retried");
    assert!((55..=61).contains(&retries), "{retries} retries in 30 s");
}

async fn accounts(fleet: &Fleet) -> BTreeSet<String> {
    let accounts: Api<ServiceAccount> = Api::all(fleet.server.admin());
    let all = accounts.list(&Default::default()).await.unwrap().items;
    all.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn child_of_a_late_watch_is_restored() {
    for (moved, sharding) in cases() {
        let mut fleet = Fleet::new(sharding);
        fleet.watches_late = true;
        fleet.start_many(3).await;
        let names = fleet.create_many(OBJECTS).await;
        fleet.reconciled().await;
        sleep(5 * SECOND).await;
        let all: BTreeSet<String> = names.iter().cloned().collect();
        assert_eq!(accounts(&fleet).await, all);
        moved.happen(&mut fleet);
        for name in &names {
            let accounts: Api<ServiceAccount> = Api::namespaced(fleet.server.admin(), &namespace_of(name));
            accounts.delete(name, &DeleteParams::default()).await.unwrap();
            sleep(PACE).await;
        }
        sleep(SETTLED).await;
        assert_eq!(accounts(&fleet).await, all, "{moved:?}");
        fleet.check();
    }
}

/// Held while a task is running on a replica.
struct Runs(Arc<AtomicUsize>);

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.store(NOBODY, Ordering::Relaxed);
    }
}

const NOBODY: usize = 0;

#[tokio::test(start_paused = true)]
async fn task_stays_when_replicas_join_and_moves_after_a_crash() {
    let runner = Arc::new(AtomicUsize::new(NOBODY));
    let mut fleet = Fleet::new(true);
    let start = |fleet: &mut Fleet, number: usize| {
        let runner = Arc::clone(&runner);
        let task = Task::new("sweeper", move |stopped| async move {
            assert_eq!(runner.swap(number, Ordering::Relaxed), NOBODY, "one at a time");
            let _runs = Runs(runner);
            stopped.requested().await;
            Ok::<_, Error>(())
        });
        fleet.start_with(|manager| manager.task(task));
    };
    start(&mut fleet, 1);
    sleep(40 * SECOND).await;
    for number in [2, 3] {
        start(&mut fleet, number);
        sleep(30 * SECOND).await;
        assert_eq!(runner.load(Ordering::Relaxed), 1);
    }
    fleet.crash(0);
    let crashed = Instant::now();
    sleep(SECOND / 100).await;
    while runner.load(Ordering::Relaxed) == NOBODY {
        sleep(SECOND / 10).await;
    }
    let waited = crashed.elapsed();
    assert!(waited >= 12 * SECOND && waited <= TAKEN_OVER, "{waited:?}");
}
