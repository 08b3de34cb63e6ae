//! Managers and the fake server with a paused clock, so that hours of requeues, backoff and watches
//! pass instantly.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use rbuilder::fake::{ApiServer, Fault, Verb};
use rbuilder::testing::{eventually, run};
use rbuilder::{Action, Controller, Ctx, Error, Manager, ManagerArgs, Result};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::support::map;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// Records when each object is reconciled, according to tokio's clock.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<(String, Instant)>>>);

impl Diary {
    fn note(&self, name: &str) {
        self.0.lock().unwrap().push((name.to_owned(), Instant::now()));
    }

    fn count(&self, name: &str) -> usize {
        self.times(name).len()
    }

    fn times(&self, name: &str) -> Vec<Instant> {
        let notes = self.0.lock().unwrap();
        notes
            .iter()
            .filter(|(noted, _)| noted == name)
            .map(|(_, when)| *when)
            .collect()
    }

    /// Returns the intervals between the reconciles of an object.
    fn pauses(&self, name: &str) -> Vec<Duration> {
        self.times(name)
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect()
    }
}

fn args() -> ManagerArgs {
    ManagerArgs {
        watch_namespace: "default".to_owned(),
        ..ManagerArgs::for_tests()
    }
}

async fn create(server: &ApiServer, name: &str) {
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    maps.create(&PostParams::default(), &map(name, json!({})))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn requeue_happens_after_its_delay() {
    async fn reconcile(map: Arc<ConfigMap>, ctx: Ctx<Diary>) -> Result {
        ctx.note(&map.name_any());
        Ok(Action::requeue(HOUR))
    }
    let (server, diary) = (ApiServer::new(), Diary::default());
    create(&server, "a").await;
    let manager = Manager::with_client("paused", server.client(), args());
    let running = run(manager.controller(Controller::new(reconcile, diary.clone())));
    eventually(MINUTE, || async { diary.count("a") == 1 }).await;
    sleep(HOUR - Duration::from_secs(1)).await;
    assert_eq!(diary.count("a"), 1);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(diary.count("a"), 2);
    sleep(24 * HOUR).await;
    assert_eq!(diary.count("a"), 26);
    running.stop().await;
}

/// Watches are restarted every few minutes, without a relist and without missing any events.
#[tokio::test(start_paused = true)]
async fn day_of_watches_costs_one_list() {
    async fn reconcile(map: Arc<ConfigMap>, ctx: Ctx<Diary>) -> Result {
        ctx.note(&map.name_any());
        Ok(Action::await_change())
    }
    let (server, diary) = (ApiServer::new(), Diary::default());
    let manager = Manager::with_client("paused", server.client(), args());
    let running = run(manager.controller(Controller::new(reconcile, diary.clone())));
    for hour in 0..24 {
        sleep(HOUR).await;
        let name = format!("map-{hour}");
        create(&server, &name).await;
        eventually(MINUTE, || async { diary.count(&name) == 1 }).await;
    }
    let requests = server.requests();
    let of = |verb| requests.iter().filter(|request| request.verb == verb).count();
    assert_eq!(of(Verb::List), 1);
    assert!(of(Verb::Watch) > 24 * 10, "{}", of(Verb::Watch));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn back_off_doubles_after_each_error() {
    async fn reconcile(map: Arc<ConfigMap>, ctx: Ctx<Diary>) -> Result {
        ctx.note(&map.name_any());
        Err(Error::new("not yet"))
    }
    let (server, diary) = (ApiServer::new(), Diary::default());
    create(&server, "a").await;
    let manager = Manager::with_client("paused", server.client(), args());
    let running = run(manager.controller(Controller::new(reconcile, diary.clone())));
    sleep(2 * HOUR).await;
    let pauses: Vec<u128> = diary.pauses("a").iter().map(Duration::as_millis).collect();
    let expected: Vec<u128> = (0..)
        .map(|n| (5_u128 << n.min(30)).min(1_000_000))
        .take(pauses.len())
        .collect();
    assert!(pauses.len() > 20, "{pauses:?}");
    for (pause, expected) in pauses.iter().zip(expected) {
        // tokio's timers have a resolution of a millisecond.
        assert!(pause.abs_diff(expected) <= 2, "{pauses:?}");
    }
    running.stop().await;
}

/// The manager must keep retrying until the server is available again.
#[tokio::test(start_paused = true)]
async fn manager_survives_an_outage_of_an_hour() {
    async fn reconcile(map: Arc<ConfigMap>, ctx: Ctx<Diary>) -> Result {
        ctx.note(&map.name_any());
        Ok(Action::await_change())
    }
    let (server, diary) = (ApiServer::new(), Diary::default());
    let manager = Manager::with_client("paused", server.client(), args());
    let running = run(manager.controller(Controller::new(reconcile, diary.clone())));
    create(&server, "before").await;
    eventually(MINUTE, || async { diary.count("before") == 1 }).await;
    server.inject(Fault::disconnect().verb(Verb::Watch).always());
    server.inject(Fault::status(503).verb(Verb::List).always());
    server.expire_watches();
    create(&server, "meanwhile").await;
    sleep(HOUR).await;
    assert_eq!(diary.count("meanwhile"), 0);
    let tries = server.requests().len();
    assert!(tries < 400, "{tries} requests in an hour of outage");
    server.heal();
    eventually(10 * MINUTE, || async { diary.count("meanwhile") == 1 }).await;
    assert_eq!(
        diary.count("before"),
        1,
        "what has not changed is not reconciled again"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn second_replica_leads_when_the_lease_expires() {
    async fn reconcile(map: Arc<ConfigMap>, ctx: Ctx<(Diary, &'static str)>) -> Result {
        let (diary, replica) = &*ctx;
        diary.note(&format!("{} by {replica}", map.name_any()));
        Ok(Action::await_change())
    }
    let (server, diary) = (ApiServer::new(), Diary::default());
    let replica = |name: &'static str| {
        let args = ManagerArgs {
            leader_elect: true,
            leader_election_namespace: Some("default".to_owned()),
            ..args()
        };
        let controller = Controller::new(reconcile, (diary.clone(), name));
        Manager::with_client("paused", server.client(), args).controller(controller)
    };
    let leases: Api<Lease> = Api::default_namespaced(server.client());
    let holder = async || leases.get_opt("paused").await.unwrap()?.spec?.holder_identity;
    let first = run(replica("first"));
    let leader = eventually(MINUTE, &holder).await;
    let second = run(replica("second"));
    create(&server, "a").await;
    sleep(HOUR).await;
    assert_eq!((diary.count("a by first"), diary.count("a by second")), (1, 0));
    assert_eq!(holder().await, Some(leader.clone()), "it is kept");

    first.stop().await;
    create(&server, "b").await;
    eventually(MINUTE, || async { diary.count("b by second") == 1 }).await;
    assert_ne!(holder().await, Some(leader));
    second.stop().await;
}

/// The example in `docs/testing.md`.
#[tokio::test(start_paused = true)]
async fn lost_secret_is_restored_within_an_hour() {
    async fn reconcile(map: Arc<ConfigMap>, ctx: Ctx<()>) -> Result {
        let mut secret = Secret::default();
        secret.metadata.name = Some(map.name_any());
        ctx.apply_owned(&*map, secret).await?;
        Ok(Action::requeue(HOUR))
    }
    let server = ApiServer::new();
    let client = server.client();
    let manager = Manager::with_client("keeper", client.clone(), ManagerArgs::for_tests());
    let running = run(manager.controller(Controller::new(reconcile, ())));
    let writes = Fault::status(503).verb(Verb::Patch).kind::<Secret>();
    server.inject(writes.times(2));
    create(&server, "gate").await;
    let secrets: Api<Secret> = Api::default_namespaced(client);
    eventually(Duration::from_secs(5), || secrets.get("gate")).await;
    let requests = server.requests();
    let writes = requests
        .iter()
        .filter(|request| request.verb == Verb::Patch && request.is_of::<Secret>());
    assert_eq!(
        writes.map(|request| request.code).collect::<Vec<_>>(),
        [503, 503, 201]
    );

    secrets.delete("gate", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(3500)).await;
    assert!(secrets.get_opt("gate").await.unwrap().is_none());
    sleep(Duration::from_secs(200)).await;
    assert!(secrets.get_opt("gate").await.unwrap().is_some());
    running.stop().await;
}
