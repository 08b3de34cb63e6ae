//! The library must not panic, whatever values are configured. These tests use the fake API server
//! and a paused clock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use rbuilder::fake::ApiServer;
use rbuilder::rate_limiter::RateLimiter;
use rbuilder::testing::eventually;
use rbuilder::{Action, Controller, Ctx, Error, Manager, ManagerArgs, ObjectRef, Result};

use serde_json::json;

use crate::support::{SOON, Seen, config_map};

/// Durations that might cause an overflow.
const EXTREMES: [Duration; 7] = [
    Duration::ZERO,
    Duration::from_nanos(1),
    Duration::from_secs(u32::MAX as u64),
    Duration::from_secs(i64::MAX as u64),
    Duration::from_secs(u64::MAX / 2),
    Duration::from_secs(u64::MAX),
    Duration::MAX,
];

type Reconciled = Controller<ConfigMap, Seen>;

/// Always returns the same delay, or panics if it's `None`.
struct Fixed(Option<Duration>);

impl RateLimiter<ObjectRef<ConfigMap>> for Fixed {
    fn when(&self, map: &ObjectRef<ConfigMap>) -> Duration {
        assert_eq!(map.namespace.as_deref(), Some("default"));
        self.0.expect("no delay")
    }

    fn forget(&self, _: &ObjectRef<ConfigMap>) {
        self.0.expect("no delay");
    }

    fn num_requeues(&self, _: &ObjectRef<ConfigMap>) -> u32 {
        0
    }
}

/// Objects are retried until they succeed, whatever the rate limiter returns.
#[tokio::test(start_paused = true)]
async fn failed_object_is_retried_whatever_the_rate_limiter_returns() {
    async fn fail_twice(map: Arc<ConfigMap>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&map.name_any());
        match ctx.count(&map.name_any()) {
            ..=2 => Err(Error::new("not yet")),
            _ => Ok(Action::await_change()),
        }
    }
    for delay in EXTREMES.map(Some).into_iter().chain([None]) {
        let seen = Seen::default();
        let mut map = config_map("map", "");
        map.metadata.namespace = Some("default".to_owned());
        let server = ApiServer::new().object(&map);
        let controller = Controller::new(fail_twice, seen.clone()).rate_limiter(Fixed(delay));
        let manager = Manager::with_client("limited.example.com", server.client(), ManagerArgs::for_tests());
        // Checking once an hour is enough, because delays are limited to a day.
        let done = async {
            while seen.count("map") < 3 {
                tokio::time::sleep(Duration::from_secs(60 * 60)).await;
            }
        };
        manager.controller(controller).start_until(done).await.unwrap();
    }
}

/// Runs a manager until an object is reconciled, or until the manager fails.
async fn run(
    controller: impl FnOnce(Reconciled) -> Reconciled,
    manager: impl FnOnce(Manager) -> Manager,
) -> Result<(), String> {
    async fn note(map: Arc<ConfigMap>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&map.name_any());
        Ok(Action::await_change())
    }
    let seen = Seen::default();
    let mut map = config_map("map", "");
    map.metadata.namespace = Some("default".to_owned());
    let server = ApiServer::new().object(&map);
    let args = ManagerArgs {
        leader_elect: true,
        leader_election_namespace: Some("default".to_owned()),
        ..ManagerArgs::for_tests()
    };
    manager(Manager::with_client(
        "extremes.example.com",
        server.client(),
        args,
    ))
    .controller(controller(Controller::new(note, seen.clone())))
    .start_until(eventually(SOON, || async { seen.count("map") > 0 }))
    .await
    .map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn any_duration_is_valid_for_a_controller() {
    for time in EXTREMES.into_iter().filter(|time| !time.is_zero()) {
        run(|controller| controller.resync_every(time), |manager| manager)
            .await
            .unwrap();
    }
    // With a timeout of zero, the reconcile fails rather than the manager.
    for time in EXTREMES {
        run(|controller| controller.reconcile_timeout(time), |manager| manager)
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn any_duration_is_valid_for_a_manager() {
    for time in EXTREMES {
        run(|controller| controller, |manager| manager.grace_period(time))
            .await
            .or_else(only_late)
            .unwrap();
        run(
            |controller| controller,
            |manager| manager.cache_sync_timeout(time),
        )
        .await
        .or_else(only_late)
        .unwrap();
    }
}

/// Only accepts errors about a lack of time.
fn only_late(error: String) -> Result<(), String> {
    let is_late = error.contains("did not stop within") || error.contains("waiting for the cache");
    if is_late { Ok(()) } else { Err(error) }
}

/// Inconsistent durations are an error; all others are valid.
#[tokio::test(start_paused = true)]
async fn any_duration_is_valid_for_a_lease() {
    for time in EXTREMES {
        let settings: [fn(Manager, Duration) -> Manager; 4] = [
            Manager::lease_duration,
            Manager::renew_deadline,
            Manager::retry_period,
            |manager, time| {
                let earlier = time.saturating_sub(Duration::from_secs(1));
                manager.lease_duration(time).renew_deadline(earlier)
            },
        ];
        for set in settings {
            match run(|controller| controller, |manager| set(manager, time)).await {
                Ok(()) => {}
                Err(error) => assert!(error.starts_with("invalid leader election"), "{time:?}: {error}"),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn any_limit_and_user_agent_is_valid_for_a_manager() {
    for (connections, requests) in [(0, 0), (1, 1), (usize::MAX, u32::MAX)] {
        let set = |manager: Manager| {
            manager
                .max_connections(connections)
                .request_rate(requests, requests)
                .user_agent("\0\r\n", "")
        };
        run(|controller| controller, set).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn any_number_of_workers_is_valid() {
    for max in [0, 1, usize::MAX] {
        run(|controller| controller.concurrency(max), |manager| manager)
            .await
            .unwrap();
    }
}

/// A failed reconcile is retried after an arbitrary delay, and the manager keeps running.
#[tokio::test(start_paused = true)]
async fn any_back_off_is_valid() {
    async fn fail(map: Arc<ConfigMap>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&map.name_any());
        Err(Error::new("not now"))
    }
    let pairs = EXTREMES
        .iter()
        .flat_map(|min| EXTREMES.iter().map(|max| (*min, *max)));
    for (min, max) in pairs {
        let seen = Seen::default();
        let mut map = config_map("map", "");
        map.metadata.namespace = Some("default".to_owned());
        let server = ApiServer::new().object(&map);
        let manager = Manager::with_client("extremes.example.com", server.client(), ManagerArgs::for_tests());
        let is_short = min.min(max).as_secs() == 0;
        let tries = if is_short { 5 } else { 1 };
        let tried = async {
            eventually(SOON, || async { seen.count("map") >= tries }).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        manager
            .controller(Controller::new(fail, seen.clone()).backoff(min, max))
            .start_until(tried)
            .await
            .unwrap_or_else(|error| panic!("{min:?} to {max:?}: {error}"));
        // The default backoff would have retried after 5 ms.
        assert!(is_short || seen.count("map") == 1, "{min:?} to {max:?}");
    }
}

/// A change reconciles an object even if it was requeued with an arbitrary delay. Short delays are
/// excluded: with a paused clock, nothing else would get to run.
#[tokio::test(start_paused = true)]
async fn any_delay_is_valid_for_a_requeue() {
    for delay in EXTREMES.into_iter().filter(|delay| delay.as_secs() > 0) {
        let queue = move |map: Arc<ConfigMap>, ctx: Ctx<Seen>| async move {
            ctx.note(&map.name_any());
            Ok::<_, Error>(Action::requeue(delay))
        };
        let seen = Seen::default();
        let mut map = config_map("map", "");
        map.metadata.namespace = Some("default".to_owned());
        let server = ApiServer::new().object(&map);
        let args = ManagerArgs::for_tests();
        let manager = Manager::with_client("extremes.example.com", server.client(), args);
        let changed = async {
            eventually(SOON, || async { seen.count("map") > 0 }).await;
            let before = seen.count("map");
            let maps = Api::<ConfigMap>::namespaced(server.client(), "default");
            let change = Patch::Merge(json!({ "data": { "text": "changed" } }));
            maps.patch("map", &PatchParams::default(), &change).await.unwrap();
            eventually(SOON, || async { seen.count("map") > before }).await;
        };
        manager
            .controller(Controller::new(queue, seen.clone()))
            .start_until(changed)
            .await
            .unwrap();
    }
}

/// Formatting this error panics.
#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no words")
    }
}

impl std::error::Error for Unspeakable {}

/// The key is retried, and the worker keeps running.
#[tokio::test(start_paused = true)]
async fn error_whose_display_panics_is_retried() {
    async fn fail(map: Arc<ConfigMap>, ctx: Ctx<Seen>) -> Result<Action, Unspeakable> {
        ctx.note(&map.name_any());
        Err(Unspeakable)
    }
    let seen = Seen::default();
    let mut server = ApiServer::new();
    for name in ["first", "second"] {
        let mut map = config_map(name, "");
        map.metadata.namespace = Some("default".to_owned());
        server = server.object(&map);
    }
    let manager = Manager::with_client("extremes.example.com", server.client(), ManagerArgs::for_tests());
    let tried = eventually(SOON, || async {
        ["first", "second"].iter().all(|name| seen.count(name) > 2)
    });
    manager
        .controller(Controller::new(fail, seen.clone()).concurrency(1))
        .start_until(tried)
        .await
        .unwrap();
}
