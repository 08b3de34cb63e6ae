//! Metrics and readiness of caches, and how they list objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject};
use kube::client::Body;
use kube::core::GroupVersionKind;
use kube::runtime::watcher::{InitialListStrategy, ListSemantic};
use kube::{Client, ResourceExt};
use rbuilder::envtest::ReservedPort;
use rbuilder::metrics::Metrics;
use rbuilder::testing::eventually;
use rbuilder::{Action, Controller, Ctx, DynamicKind, Manager, ManagerArgs, ObjectRef, Result, Watch};
use serde_json::json;

use crate::support::{Memo, Operator, Place, SOON, Seen, Server, copy, get, memo, on_both_servers};

on_both_servers!(
    caches_have_metrics,
    debug_endpoints_show_a_running_manager,
    every_list_strategy_delivers_all_objects,
);

/// Two of the memos (by name) add a watch for a kind that doesn't exist.
async fn look(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    let ghosts = || Watch::mapped_dynamic(&ghosts(), to_nothing);
    match memo.name_any().as_str() {
        "late" => drop(ctx.watch("ghosts", ghosts())?),
        "required" => drop(ctx.watch("ghosts", ghosts().required())?),
        _ => {}
    }
    ctx.note(&memo.name_any());
    Ok(Action::await_change())
}

async fn caches_have_metrics(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("a", "text")).await;
    let controller = Controller::new(copy, Seen::default()).owns::<ConfigMap>();
    let manager = place.manager().controller(controller);
    let metrics = manager.metrics().clone();
    let operator = Operator::start(manager);
    eventually(SOON, || async { place.copied("a").await.is_some() }).await;
    place.create(memo("b", "text")).await;
    let memos = r#"{kind="Memo.controllers.example.com",content="whole",selection="",cluster=""}"#;
    let maps = r#"{kind="ConfigMap",content="metadata",selection="",cluster=""}"#;
    eventually(SOON, || async {
        let text = metrics.text();
        text.contains(&format!("rbuilder_cache_objects{memos} 2\n"))
            // One per memo, plus the CA certificate that Kubernetes adds to each namespace.
            && !text.contains(&format!("rbuilder_cache_objects{maps} 0\n"))
            && text.contains(&format!("rbuilder_cache_own_writes{maps} 0\n"))
            && text.contains(&format!("rbuilder_cache_watch_errors_total{memos} 0\n"))
            && text.contains(&format!("rbuilder_cache_relists_total{memos} 0\n"))
            && text.contains(&format!("rbuilder_cache_seconds_since_contact{memos} "))
            && text.contains(&format!("rbuilder_cache_bytes{memos} "))
            && !text.contains(&format!("rbuilder_cache_bytes{memos} 0\n"))
    })
    .await;
    if let Server::Fake(server) = &place.env {
        server.expire_watches();
        let relisted = format!("rbuilder_cache_relists_total{memos} 1\n");
        eventually(SOON, || async { metrics.text().contains(&relisted) }).await;
    }
    operator.stop().await.unwrap();
}

/// With `--enable-debug-endpoints`, the queues and the watches of caches can be inspected.
async fn debug_endpoints_show_a_running_manager(server: Server) {
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&memo.name_any());
        match memo.name_any().as_str() {
            "failing" => Err(rbuilder::Error::new("not today")),
            "later" => Ok(Action::requeue(Duration::from_secs(3600))),
            _ => Ok(std::future::pending().await),
        }
    }
    let place = Place::new(server).await;
    for name in ["failing", "later", "stuck"] {
        place.create(memo(name, "the contents")).await;
    }
    let reserved = ReservedPort::reserve().unwrap();
    let args = ManagerArgs {
        watch_namespace: place.namespace.clone(),
        metrics_bind_address: format!("127.0.0.1:{}", reserved.number()),
        metrics_secure: false,
        enable_debug_endpoints: true,
        ..ManagerArgs::for_tests()
    };
    let (address, seen) = (args.metrics_bind_address.clone(), Seen::default());
    let controller = Controller::new(reconcile, seen.clone()).backoff(SOON * 10, SOON * 10);
    let manager = Manager::with_client("debug.example.com", place.env.client(), args);
    let manager = manager.controller(controller).grace_period(Duration::ZERO);
    let operator = Operator::start(manager);
    let ask = async |path: &str| {
        let answer = get(&address, path).await.unwrap_or_default();
        answer
            .split_once("\r\n\r\n")
            .map(|(_, body)| body.to_owned())
            .unwrap_or_default()
    };
    let namespace = &place.namespace;
    eventually(SOON, || async {
        let text = ask("/debug/queues").await;
        let line = |name: &str| {
            let end = format!(" {namespace}/{name}");
            text.lines()
                .find(|line| line.ends_with(&end))
                .unwrap_or_default()
                .to_owned()
        };
        text.contains("workers 4, in progress 1, ready 0, delayed 2")
            && line("stuck").starts_with("  in progress for ")
            && line("failing").starts_with("  due in ")
            && line("failing").contains(" failures 1 ")
            && line("later").contains(" failures 0 ")
            // Retries keep the priority of the initial list.
            && line("later").contains(" priority -100 ")
            && !text.contains("the contents")
    })
    .await;
    let text = ask("/debug/caches").await;
    let start = format!(
        "Memo.controllers.example.com in namespace {namespace}: whole, synced, objects 3, last data "
    );
    assert!(text.starts_with(&start), "{text}");
    let json: serde_json::Value = serde_json::from_str(&ask("/debug/caches?format=json").await).unwrap();
    assert_eq!(
        (&json[0]["objects"], &json[0]["need"]),
        (&json!(3), &json!("atStart")),
        "{json}"
    );
    assert!(ask("/debug/").await.contains("/debug/caches "));
    assert!(operator.stop().await.is_err(), "a reconcile is stuck");
}

async fn every_list_strategy_delivers_all_objects(server: Server) {
    let place = Place::new(server).await;
    for number in 0..5 {
        place.create(memo(&format!("memo-{number}"), "")).await;
    }
    let mut managers = vec![
        ("pages of 2", place.manager().list_page_size(2)),
        (
            "any version",
            place.manager().list_semantic(ListSemantic::Any).list_page_size(0),
        ),
    ];
    // For streaming lists, kube-apiserver requests progress notifications from etcd, which Debian's
    // etcd 3.4 doesn't support. Set `TEST_ASSET_ETCD` to use a different etcd (e.g. the one built
    // by `cargo xtask bench-operator`).
    if matches!(place.env, Server::Fake(_)) || std::env::var_os("TEST_ASSET_ETCD").is_some() {
        let strategy = InitialListStrategy::StreamingList;
        managers.push((
            "a streaming list",
            place.manager().initial_list_strategy(strategy),
        ));
    }
    for (strategy, manager) in managers {
        let seen = Seen::default();
        let manager = manager.controller(Controller::new(look, seen.clone()));
        let operator = Operator::start(manager);
        for number in 0..5 {
            let name = format!("memo-{number}");
            eventually(SOON, || async {
                match seen.count(&name) {
                    1 => Ok(()),
                    count => Err(format!("{name} was reconciled {count} times with {strategy}")),
                }
            })
            .await;
        }
        operator.stop().await.unwrap();
    }
}

/// An operator with probes, whose caches become stale after two seconds.
struct Probed {
    place: Place,
    address: String,
    metrics: Metrics,
    seen: Seen,
    operator: Operator,
}

impl Probed {
    /// `look` is the reconcile function.
    async fn start(
        place: Place,
        client: Client,
        namespaces: &str,
        controller: impl FnOnce(Controller<Memo, Seen>) -> Controller<Memo, Seen>,
    ) -> Self {
        let reserved = ReservedPort::reserve().unwrap();
        let address = format!("127.0.0.1:{}", reserved.number());
        let args = ManagerArgs {
            watch_namespace: namespaces.to_owned(),
            health_probe_bind_address: address.clone(),
            ..ManagerArgs::for_tests()
        };
        let seen = Seen::default();
        let manager = Manager::with_client("stale.example.com", client, args)
            .cache_stale_after(Duration::from_secs(2))
            .controller(controller(Controller::new(look, seen.clone())));
        let metrics = manager.metrics().clone();
        let operator = Operator::start(manager);
        Self {
            place,
            address,
            metrics,
            seen,
            operator,
        }
    }

    async fn readiness(&self) -> String {
        get(&self.address, "/readyz/caches").await.unwrap_or_default()
    }

    async fn wait_for(&self, expected: &str) {
        eventually(SOON, || async {
            let readiness = self.readiness().await;
            match readiness.contains(expected) {
                true => Ok(()),
                false => Err(readiness),
            }
        })
        .await;
    }

    /// Returns how many seconds ago the caches of a kind last received data.
    fn since_contact(&self, kind: &str) -> f64 {
        let text = self.metrics.text();
        let start = format!("rbuilder_cache_seconds_since_contact{{kind=\"{kind}\"");
        let line = text.lines().find(|line| line.starts_with(&start));
        let value = line.and_then(|line| line.rsplit(' ').next());
        value.and_then(|value| value.parse().ok()).unwrap_or_default()
    }

    /// Returns the readiness after a kind hasn't received data for three seconds, but a memo has
    /// just arrived.
    async fn readiness_without(&self, kind: &str) -> String {
        eventually(SOON, || async { self.since_contact(kind) > 3.0 }).await;
        self.place.create(memo("news", "")).await;
        eventually(SOON, || async { self.seen.count("news") > 0 }).await;
        self.readiness().await
    }
}

/// Without webhooks, a process that receives no data isn't ready.
#[tokio::test]
async fn process_without_any_data_is_not_ready() {
    let place = Place::new(Server::fake()).await;
    let (client, namespace) = (place.env.client(), place.namespace.clone());
    let probed = Probed::start(place, client, &namespace, |controller| controller).await;
    probed.wait_for(" 200 ").await;
    probed
        .wait_for("no data from the watch of Memo.controllers.example.com in namespace")
        .await;
    probed.place.create(memo("news", "")).await;
    probed.wait_for(" 200 ").await;
    probed.operator.stop().await.unwrap();
}

/// This kind isn't installed.
fn ghosts() -> DynamicKind {
    let gvk = GroupVersionKind::gvk("no.example.com", "v1", "Ghost");
    DynamicKind::namespaced(ApiResource::from_gvk(&gvk))
}

fn to_nothing(_: &DynamicObject, _: &Ctx<Seen>) -> Vec<ObjectRef<Memo>> {
    Vec::new()
}

#[tokio::test]
async fn late_watch_of_a_missing_kind_does_not_affect_readiness() {
    for required in [false, true] {
        let place = Place::new(Server::fake()).await;
        place
            .create(memo(if required { "required" } else { "late" }, ""))
            .await;
        let (client, namespace) = (place.env.client(), place.namespace.clone());
        let probed = Probed::start(place, client, &namespace, |controller| controller).await;
        let readiness = probed.readiness_without("Ghost.no.example.com").await;
        match required {
            true => assert!(
                readiness.contains("no data from the watch of Ghost.no.example.com in namespace")
                    && readiness.contains("is the CRD installed?"),
                "{readiness}"
            ),
            false => assert!(readiness.contains(" 200 "), "{readiness}"),
        }
        probed.operator.stop().await.unwrap();
    }
}

#[tokio::test]
async fn losing_access_to_a_namespace_does_not_affect_readiness() {
    for required in [false, true] {
        let place = Place::new(Server::fake()).await;
        let lost = place.env.namespace("lost").await;
        let (is_lost, inner) = (Arc::new(AtomicBool::new(false)), place.env.client());
        let client = {
            let (is_lost, path) = (Arc::clone(&is_lost), format!("/namespaces/{lost}/"));
            let service = tower::service_fn(move |request: http::Request<Body>| {
                let is_refused = is_lost.load(Ordering::Relaxed) && request.uri().path().contains(&path);
                let inner = inner.clone();
                async move {
                    if is_refused {
                        return Ok(forbidden());
                    }
                    inner.send(request).await
                }
            });
            Client::new(service, "default")
        };
        let namespaces = format!("{},{lost}", place.namespace);
        let probed = Probed::start(place, client, &namespaces, |controller| match required {
            true => controller.required(),
            false => controller,
        })
        .await;
        probed.wait_for(" 200 ").await;
        is_lost.store(true, Ordering::Relaxed);
        if let Server::Fake(server) = &probed.place.env {
            server.drop_watches();
        }
        let readiness = probed.readiness_without("Memo.controllers.example.com").await;
        match required {
            true => assert!(
                readiness.contains(" 500 ")
                    && readiness.contains(&format!("in namespace {lost}"))
                    && readiness.contains("not allowed"),
                "{readiness}"
            ),
            false => assert!(readiness.contains(" 200 "), "{readiness}"),
        }
        probed.operator.stop().await.unwrap();
    }
}

fn forbidden() -> http::Response<Body> {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
        "message": "not allowed", "code": 403 });
    let response = http::Response::builder().status(403);
    response
        .body(Body::from(status.to_string().into_bytes()))
        .unwrap()
}

/// A reconcile can distinguish an empty cache from one that hasn't synced.
#[tokio::test]
async fn manager_starts_without_an_optional_kind() {
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        let is_filled = ctx.cached_dynamic(&ghosts())?.is_synced();
        ctx.note(&format!("{} {is_filled}", memo.name_any()));
        Ok(Action::await_change())
    }
    let place = Place::new(Server::fake()).await;
    place.create(memo("memo", "")).await;
    let seen = Seen::default();
    let watch = Watch::mapped_dynamic(&ghosts(), to_nothing).optional();
    let controller = Controller::new(reconcile, seen.clone()).watch(watch);
    let operator = Operator::start(place.manager().controller(controller));
    eventually(SOON, || async { seen.count("memo false") == 1 }).await;
    operator.stop().await.unwrap();
}
