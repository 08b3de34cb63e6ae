//! Checks for leaks after stopping a manager, by comparing the number of tasks, open files, threads
//! and connections with the numbers before. Runs in its own process, because other tests would
//! change these numbers. Ignored unless `KUBEBUILDER_ASSETS` is set.

#![allow(clippy::disallowed_macros)] // prints the counts

#[allow(dead_code)] // `faults` uses the rest
#[path = "faults/lot.rs"]
mod lot;
#[allow(dead_code)] // it can do more than is needed here
#[path = "faults/proxy.rs"]
mod proxy;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Patch, PatchParams};
use kube::core::admission::AdmissionResponse;
use kube::{Api, ResourceExt};
use rbuilder::envtest::{Environment, WebhookServer, eventually};
use rbuilder::webhook::AdmissionRequest;
use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, Result, trigger};
use serde_json::json;
use tokio::runtime::Handle;

use proxy::{Fault, Proxy, closed};

const LEASE: &str = "leaks.example.com";
const SOON: Duration = Duration::from_secs(30);
/// tokio's blocking threads exit after being idle for 10 s.
const SETTLED: Duration = Duration::from_secs(20);

/// Resources that the process is using.
#[derive(Clone, Copy, Debug)]
struct Figures {
    tasks: usize,
    files: usize,
    threads: usize,
}

impl Figures {
    fn now() -> Self {
        let count = |folder: &str| std::fs::read_dir(folder).unwrap().count();
        Self {
            tasks: Handle::current().metrics().num_alive_tasks(),
            files: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
        }
    }

    fn is_at_most(self, before: Self) -> bool {
        self.tasks <= before.tasks && self.files <= before.files && self.threads <= before.threads
    }
}

#[derive(Clone, Default)]
struct Calls(Arc<AtomicUsize>);

async fn reconcile(map: Arc<ConfigMap>, ctx: Ctx<Calls>) -> Result {
    ctx.0.fetch_add(1, Ordering::Relaxed);
    ctx.normal(&*map, "Seen", "Look", "the map was seen");
    if map.name_any() == "hanging" {
        std::future::pending::<()>().await;
    }
    Ok(Action::requeue(Duration::from_secs(600)))
}

async fn count(_: Arc<Secret>, ctx: Ctx<Calls>) -> Result {
    ctx.0.fetch_add(1, Ordering::Relaxed);
    Ok(Action::await_change())
}

async fn allow(request: AdmissionRequest) -> AdmissionResponse {
    AdmissionResponse::from(&request)
}

/// A namespace with a ConfigMap for the controller.
struct Place {
    env: Environment,
    namespace: String,
    webhooks: WebhookServer,
}

impl Place {
    async fn new(env: Environment) -> Self {
        let namespace = env.namespace("leaks").await.unwrap();
        let webhooks = env.webhook_server().unwrap();
        Self {
            env,
            namespace,
            webhooks,
        }
    }

    async fn apply_map(&self, name: &str) {
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
        let params = PatchParams::apply("leaks").force();
        let maps = Api::<ConfigMap>::namespaced(self.env.client(), &self.namespace);
        maps.patch(name, &params, &Patch::Apply(map)).await.unwrap();
    }

    /// Sets the holder of the lease. An empty holder releases it.
    async fn give_lease(&self, holder: &str) {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": LEASE },
            "spec": { "holderIdentity": holder, "leaseDurationSeconds": 600 },
        });
        let params = PatchParams::apply("leaks").force();
        let leases = Api::<Lease>::namespaced(self.env.client(), &self.namespace);
        leases.patch(LEASE, &params, &Patch::Apply(lease)).await.unwrap();
    }

    /// All features of the manager are enabled.
    fn manager(&self, proxy: &Proxy, calls: &Calls, change: impl FnOnce(&mut ManagerArgs)) -> Manager {
        let mut args = self.webhooks.args(ManagerArgs {
            watch_namespace: self.namespace.clone(),
            leader_elect: true,
            leader_election_namespace: Some(self.namespace.clone()),
            health_probe_bind_address: "127.0.0.1:0".to_owned(),
            metrics_bind_address: "127.0.0.1:0".to_owned(),
            ..ManagerArgs::for_tests()
        });
        change(&mut args);
        let (_, triggers) = trigger::channel::<Secret>();
        Manager::with_config(LEASE, proxy.config(), args)
            .unwrap()
            .grace_period(Duration::from_millis(300))
            .raw_webhook("/allow", allow)
            .controller(
                Controller::new(reconcile, calls.clone())
                    .owns::<Secret>()
                    .index::<Secret>("all", |_| vec!["all".to_owned()]),
            )
            .controller(
                Controller::new(count, calls.clone())
                    .triggers(triggers)
                    .resync_every(Duration::from_secs(600)),
            )
    }
}

async fn called(calls: &Calls, times: usize) {
    eventually(SOON, || async { calls.0.load(Ordering::Relaxed) >= times }).await;
}

fn fails(ended: Result<()>, expected: &str) {
    let error = ended.unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

async fn at_work(place: &Place, proxy: &Proxy) {
    let calls = Calls::default();
    place.give_lease("").await;
    place.apply_map("map").await;
    let manager = place.manager(proxy, &calls, |_| {});
    manager.start_until(called(&calls, 1)).await.unwrap();
}

async fn without_a_certificate(place: &Place, proxy: &Proxy) {
    let manager = place.manager(proxy, &Calls::default(), |args| {
        args.webhook_cert_path = Some("/nowhere".into());
    });
    fails(
        manager.start_until(std::future::pending()).await,
        "--webhook-cert-path",
    );
}

async fn before_the_caches_are_filled(place: &Place, proxy: &Proxy) {
    proxy.inject([(1.0, Fault::Refuse(StatusCode::INTERNAL_SERVER_ERROR))]);
    let manager = place.manager(proxy, &Calls::default(), |_| {});
    let manager = manager.cache_sync_timeout(Duration::from_secs(1));
    fails(
        manager.start_until(std::future::pending()).await,
        "waiting for the cache of",
    );
}

async fn before_it_leads(place: &Place, proxy: &Proxy) {
    place.give_lease("another").await;
    let manager = place.manager(proxy, &Calls::default(), |_| {});
    let has_asked = eventually(SOON, || async { proxy.requests() > 4 });
    manager.start_until(has_asked).await.unwrap();
}

async fn with_a_reconcile_that_hangs(place: &Place, proxy: &Proxy) {
    let calls = Calls::default();
    place.give_lease("").await;
    place.apply_map("hanging").await;
    let manager = place.manager(proxy, &calls, |_| {});
    let ended = manager.start_until(called(&calls, 2)).await;
    fails(ended, "did not stop within the grace period");
    // The lease was never released.
    place.give_lease("").await;
}

async fn behind_a_silent_network(place: &Place, proxy: &Proxy) {
    let calls = Calls::default();
    place.give_lease("").await;
    let manager = place.manager(proxy, &calls, |_| {});
    let cut_off = async {
        called(&calls, 1).await;
        proxy.fall_silent();
    };
    // The manager may be unable to send its events or to release its lease.
    let _ = manager.start_until(cut_off).await;
    // Only now can the proxy detect closed connections again.
    proxy.restore();
    place.give_lease("").await;
}

/// The runtime outlives the dropped manager.
async fn dropped(place: &Place, proxy: &Proxy) {
    let calls = Calls::default();
    place.give_lease("").await;
    let manager = place.manager(proxy, &calls, |_| {});
    tokio::select! {
        ended = manager.start_until(std::future::pending()) => panic!("{ended:?}"),
        () = called(&calls, 1) => {}
    }
}

/// Checks that managers don't leak anything, not counting the first one.
async fn leave_nothing(place: &Place, what: &str, managers: usize, round: impl AsyncFn(&Place, &Proxy)) {
    let mut before = None;
    for count in 0..=managers {
        let proxy = Proxy::start(place.env.client(), 0).await;
        round(place, &proxy).await;
        let requests = proxy.requests();
        assert!(
            closed(&proxy, SOON).await,
            "{what}: {} connections are left",
            proxy.open()
        );
        drop(proxy);
        if count == 0 {
            tokio::time::sleep(SETTLED).await;
            before = Some(Figures::now());
            println!("{what}: {before:?} after {requests} requests of the first");
        }
    }
    let before = before.unwrap();
    eventually(2 * SETTLED, || async {
        let now = Figures::now();
        match now.is_at_most(before) {
            true => Ok(()),
            false => Err(format!(
                "{what}: after {managers} managers {now:?}, before {before:?}"
            )),
        }
    })
    .await;
    println!("{what}: {:?} after {managers} more", Figures::now());
}

#[rbuilder::envtest::test]
async fn stopped_managers_leak_nothing(env: Environment) {
    let place = Place::new(env).await;
    leave_nothing(&place, "at work", 20, at_work).await;
    leave_nothing(&place, "without a certificate", 5, without_a_certificate).await;
    leave_nothing(
        &place,
        "before its caches are filled",
        3,
        before_the_caches_are_filled,
    )
    .await;
    leave_nothing(&place, "before it leads", 5, before_it_leads).await;
    leave_nothing(&place, "dropped", 5, dropped).await;
    leave_nothing(&place, "behind a silent network", 2, behind_a_silent_network).await;
    // Keep this last, because its webhook stays in the namespace.
    leave_nothing(
        &place,
        "with a reconcile that hangs",
        3,
        with_a_reconcile_that_hangs,
    )
    .await;
}
