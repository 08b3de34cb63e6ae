//! Measures memory per cached object and per queued key, and the number of allocations per
//! reconcile. None of these depend on the machine, so the test can fail if they increase.
//! Everything else is measured by `cargo xtask bench-operator`.
//!
//! This is a single test because all tests in a program share the counting allocator.

#![allow(clippy::disallowed_macros)] // prints the measurements

use std::alloc::System;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::client::Body;
use kube::core::PartialObjectMeta;
use rbuilder::envtest::eventually;
use rbuilder::{Action, Cached, Controller, Ctx, Manager, ManagerArgs, ObjectRef, Result, trigger};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Maximum size of a cached ConfigMap with 200 bytes of data, two labels and an annotation. Maps
/// account for two thirds of it, because even an almost empty node of a `BTreeMap<String, String>`
/// takes 544 bytes.
const BYTES_PER_OBJECT: usize = 2800;
/// Maximum size of the cached metadata of a Deployment with three labels, an annotation and an
/// owner. Controllers cache this for the kinds that they own.
const BYTES_PER_METADATA: usize = 220;
/// Maximum number of allocations per object for listing this metadata from a cache. Reading a
/// single object takes a few more, because it's cloned while the cache is locked.
const ALLOCATIONS_PER_LISTED: usize = 25;
/// Maximum number of allocations of a no-op reconcile, including the queue.
const ALLOCATIONS_PER_RECONCILE: usize = 12;
/// Maximum number of allocations of a reconcile that applies a Deployment. The response has 50
/// managed fields owned by the controller.
const ALLOCATIONS_PER_APPLY: usize = 660;
/// Maximum size of a queued key.
const BYTES_PER_KEY: usize = 260;
const BURST: usize = 100_000;
/// Maximum number of bytes that a burst may leave behind.
const BYTES_AFTER_BURST: usize = 1 << 20;

const SOON: Duration = Duration::from_secs(60);

/// Objects as the API server sends them. Operators need less than half of this.
fn config_maps(count: usize) -> Bytes {
    let object = |number: usize| {
        let fields =
            json!({ "f:data": { "f:text": {} }, "f:metadata": { "f:labels": { "f:a": {}, "f:b": {} } } });
        json!({
            "metadata": {
                "name": name_of(number),
                "namespace": "default",
                "uid": format!("00000000-0000-0000-0000-{number:012}"),
                "resourceVersion": (number + 1).to_string(),
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": { "app.kubernetes.io/name": "sample", "app.kubernetes.io/part-of": "bench" },
                "annotations": {
                    "example.com/owner": "team",
                    "kubectl.kubernetes.io/last-applied-configuration": "x".repeat(600),
                },
                "managedFields": [{ "manager": "kubectl", "operation": "Update", "apiVersion": "v1",
                    "fieldsType": "FieldsV1", "fieldsV1": fields }],
            },
            "data": { "text": "x".repeat(200) },
        })
    };
    list("v1", "ConfigMap", (0..count).map(object).collect())
}

/// Each Deployment is owned by a ConfigMap with the same name.
fn deployments(count: usize) -> Bytes {
    let object = |number: usize| {
        json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": "PartialObjectMetadata",
            "metadata": {
                "name": name_of(number),
                "namespace": "default",
                "uid": format!("00000000-0000-0000-0001-{number:012}"),
                "resourceVersion": (number + 1).to_string(),
                "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {
                    "app.kubernetes.io/instance": name_of(number),
                    "app.kubernetes.io/managed-by": "bench",
                    "app.kubernetes.io/name": "sample",
                },
                "annotations": { "bench.example.com/generation": "1" },
                "ownerReferences": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": name_of(number),
                    "uid": format!("00000000-0000-0000-0000-{number:012}"), "controller": true,
                    "blockOwnerDeletion": true }],
            },
        })
    };
    list(
        "meta.k8s.io/v1",
        "PartialObjectMetadata",
        (0..count).map(object).collect(),
    )
}

/// Returns the Deployment owned by a ConfigMap, which changes in each round.
fn child(name: &str, round: usize) -> Deployment {
    let labels = json!({ "app.kubernetes.io/name": "sample", "app.kubernetes.io/instance": name });
    let container = json!({
        "name": "web",
        "image": "registry.example.com/web:1.2.3",
        "command": ["web", "--verbose"],
        "ports": [{ "name": "http", "containerPort": 8080 }],
        "resources": { "limits": { "memory": "64Mi" } },
    });
    let object = json!({
        "metadata": { "name": name, "labels": labels, "annotations": { "example.com/round": round.to_string() } },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    });
    serde_json::from_value(object).unwrap()
}

/// Returns the response to the apply of a child, to which the API server has added a default and
/// some metadata.
fn applied_child(number: usize) -> Bytes {
    let name = name_of(number);
    let mut answer = serde_json::to_value(child(&name, 0)).unwrap();
    let fields: serde_json::Map<_, _> = (0..50)
        .map(|field| (format!("f:field{field}"), json!({ "f:value": {} })))
        .collect();
    let metadata = json!({
        "namespace": "default",
        "uid": format!("00000000-0000-0000-0001-{number:012}"),
        "resourceVersion": (2_000_000 + number).to_string(),
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": name,
            "uid": format!("00000000-0000-0000-0000-{number:012}"), "controller": true, "blockOwnerDeletion": true }],
        "managedFields": [{ "manager": "configmap", "operation": "Apply", "apiVersion": "apps/v1",
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields }],
    });
    for (field, value) in metadata.as_object().unwrap() {
        answer["metadata"][field] = value.clone();
    }
    answer["spec"]["strategy"] = json!({ "type": "RollingUpdate" });
    answer.to_string().into()
}

fn name_of(number: usize) -> String {
    format!("object-{number:06}")
}

fn list(version: &str, kind: &str, items: Vec<Value>) -> Bytes {
    let metadata = json!({ "resourceVersion": "1000000" });
    let list =
        json!({ "kind": format!("{kind}List"), "apiVersion": version, "metadata": metadata, "items": items });
    list.to_string().into()
}

/// An API server whose objects never change.
#[derive(Clone, Copy, Debug)]
struct Contents {
    config_maps: usize,
    deployments: usize,
}

impl Contents {
    fn client(self) -> Client {
        let lists = [config_maps(self.config_maps), deployments(self.deployments)];
        let applied: Vec<_> = (0..self.config_maps).map(applied_child).collect();
        let answer = move |request: Request<Body>| {
            let uri = request.uri();
            let is_watch = uri.query().is_some_and(|query| query.contains("watch=true"));
            let body = if *request.method() == Method::PATCH {
                let (_, number) = uri.path().rsplit_once('-').unwrap();
                Full::new(applied[number.parse::<usize>().unwrap()].clone()).boxed()
            } else if is_watch {
                let silence = futures::stream::pending::<std::result::Result<Frame<Bytes>, Infallible>>();
                StreamBody::new(silence).boxed()
            } else {
                Full::new(lists[usize::from(uri.path().ends_with("/deployments"))].clone()).boxed()
            };
            std::future::ready(Ok::<_, Infallible>(Response::new(body)))
        };
        Client::new(tower::service_fn(answer), "default")
    }
}

struct State {
    reconciled: AtomicUsize,
    /// Each reconcile needs a permit.
    gate: Semaphore,
}

async fn count(_object: Arc<ConfigMap>, ctx: Ctx<Arc<State>>) -> Result {
    let _permit = ctx.gate.acquire().await;
    ctx.reconciled.fetch_add(1, Ordering::Relaxed);
    Ok(Action::await_change())
}

/// Applies the child of an object, and counts the reconcile.
async fn apply(object: Arc<ConfigMap>, ctx: Ctx<Arc<State>>) -> Result {
    // `apply_owned` wouldn't send the same body again.
    let round = ctx.reconciled.load(Ordering::Relaxed);
    let name = object.metadata.name.as_deref().unwrap_or_default();
    ctx.apply_owned(&*object, child(name, round)).await?;
    ctx.reconciled.fetch_add(1, Ordering::Relaxed);
    Ok(Action::await_change())
}

#[derive(Clone, Copy, PartialEq)]
enum Work {
    Count,
    CountAndOwn,
    Apply,
}

/// An operator that has reconciled each object once.
struct Operator {
    state: Arc<State>,
    triggers: trigger::Trigger<ConfigMap>,
    /// `None` if the operator doesn't own Deployments.
    owned: Option<Cached<PartialObjectMeta<Deployment>>>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<()>>,
}

impl Operator {
    /// Also returns the number of bytes in use after the first reconciles.
    async fn start(contents: Contents, work: Work) -> (Self, usize) {
        let client = contents.client();
        let state = Arc::new(State {
            reconciled: AtomicUsize::new(0),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
        });
        let (sender, triggers) = trigger::channel();
        let controller = match work {
            Work::Count => Controller::new(count, Arc::clone(&state)),
            Work::CountAndOwn => Controller::new(count, Arc::clone(&state)).owns::<Deployment>(),
            Work::Apply => Controller::new(apply, Arc::clone(&state)).owns::<Deployment>(),
        };
        let controller = controller.triggers(triggers);
        let before = Region::new(ALLOCATOR);
        let mut manager = Manager::with_client("cost.example.com", client, ManagerArgs::for_tests());
        let owned = (work != Work::Count).then(|| manager.cached());
        let manager = manager.controller(controller);
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(manager.start_until(async {
            let _ = stopped.await;
        }));
        let operator = Self {
            state,
            triggers: sender,
            owned,
            stop,
            running,
        };
        operator.reach(contents.config_maps).await;
        (operator, in_use(&before))
    }

    /// Waits until there were `expected` reconciles in total.
    async fn reach(&self, expected: usize) {
        eventually(SOON, || async {
            self.state.reconciled.load(Ordering::Relaxed) >= expected
        })
        .await;
    }

    /// Reconciles all objects again. Returns the number of allocations.
    async fn reconcile_again(&self, objects: usize) -> usize {
        let names: Vec<_> = (0..objects).map(name_of).collect();
        let expected = self.state.reconciled.load(Ordering::Relaxed) + objects;
        let before = Region::new(ALLOCATOR);
        for name in names {
            self.trigger(&name).await;
        }
        self.reach(expected).await;
        let change = before.change();
        change.allocations + change.reallocations
    }

    async fn trigger(&self, name: &str) {
        let reference = ObjectRef::<ConfigMap>::new(name).within("default");
        self.triggers.send(reference).await;
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.running.await.unwrap().unwrap();
    }
}

/// Returns the number of bytes allocated since `before` and not freed yet.
fn in_use(before: &Region<System>) -> usize {
    let change = before.change();
    change.bytes_allocated.saturating_sub(change.bytes_deallocated)
}

/// Returns the bytes in use once everything is reconciled, and the allocations for reconciling all
/// objects again.
async fn cost_of_objects(objects: usize) -> (usize, usize) {
    let contents = Contents {
        config_maps: objects,
        deployments: 0,
    };
    let (operator, kept) = Operator::start(contents, Work::Count).await;
    let allocations = operator.reconcile_again(objects).await;
    operator.stop().await;
    (kept, allocations)
}

/// Returns the number of allocations for applying all children again.
async fn cost_of_applies(objects: usize) -> usize {
    let contents = Contents {
        config_maps: objects,
        deployments: 0,
    };
    let (operator, _) = Operator::start(contents, Work::Apply).await;
    let allocations = operator.reconcile_again(objects).await;
    operator.stop().await;
    allocations
}

/// Returns the bytes in use, and the allocations for listing all owned objects and for reading each
/// of them.
async fn cost_of_metadata(deployments: usize) -> (usize, usize, usize) {
    let contents = Contents {
        config_maps: 1,
        deployments,
    };
    // Controllers don't start before all caches have synced.
    let (operator, kept) = Operator::start(contents, Work::CountAndOwn).await;
    let owned = operator.owned.as_ref().unwrap();
    let allocations = |read: &dyn Fn() -> usize| {
        let before = Region::new(ALLOCATOR);
        assert_eq!(read(), deployments);
        before.change().allocations
    };
    let names: Vec<_> = (0..deployments).map(name_of).collect();
    let listed = allocations(&|| owned.list().len());
    let found = allocations(&|| {
        names
            .iter()
            .filter_map(|name| owned.named("default", name))
            .count()
    });
    operator.stop().await;
    (kept, listed, found)
}

/// Returns the number of bytes in use during a burst and after it.
async fn cost_of_a_burst() -> (usize, usize) {
    let contents = Contents {
        config_maps: 10,
        deployments: 0,
    };
    let (operator, _) = Operator::start(contents, Work::Count).await;
    let taken = operator.state.gate.forget_permits(Semaphore::MAX_PERMITS);
    for number in 0..9 {
        operator.trigger(&name_of(number)).await;
    }
    let before = Region::new(ALLOCATOR);
    for number in 0..BURST {
        operator.trigger(&format!("absent-{number:06}")).await;
    }
    let during = in_use(&before);
    operator.trigger(&name_of(9)).await;
    operator.state.gate.add_permits(taken);
    operator.reach(20).await;
    let after = in_use(&before);
    operator.stop().await;
    (during, after)
}

#[tokio::test]
async fn memory_and_allocations_stay_within_limits() {
    let (few, few_allocations) = cost_of_objects(200).await;
    let (many, many_allocations) = cost_of_objects(2200).await;
    let per_object = many.saturating_sub(few) / 2000;
    let per_reconcile = many_allocations.saturating_sub(few_allocations) / 2000;
    let per_apply = (cost_of_applies(1200).await).saturating_sub(cost_of_applies(200).await) / 1000;
    let (few, few_listed, few_found) = cost_of_metadata(200).await;
    let (many, many_listed, many_found) = cost_of_metadata(2200).await;
    let per_metadata = many.saturating_sub(few) / 2000;
    let per_listed = many_listed.saturating_sub(few_listed) / 2000;
    let per_found = many_found.saturating_sub(few_found) / 2000;
    let (during, after) = cost_of_a_burst().await;
    let per_key = during / BURST;
    println!(
        "bytes: {per_object} per object, {per_metadata} per metadata, {per_key} per key, {after} after a burst; \
         {per_reconcile} allocations per reconcile, {per_apply} with an apply, {per_listed} per listed metadata, {per_found} per metadata read alone"
    );
    assert!(
        per_object <= BYTES_PER_OBJECT,
        "{per_object} bytes kept per object"
    );
    assert!(
        per_metadata <= BYTES_PER_METADATA,
        "{per_metadata} bytes kept for the metadata of an object"
    );
    assert!(
        per_listed <= ALLOCATIONS_PER_LISTED && per_listed < per_found,
        "{per_listed} allocations per listed object, {per_found} if it is read alone"
    );
    assert!(
        per_reconcile <= ALLOCATIONS_PER_RECONCILE,
        "{per_reconcile} allocations per reconcile"
    );
    assert!(
        per_apply <= ALLOCATIONS_PER_APPLY,
        "{per_apply} allocations per reconcile with an apply"
    );
    assert!(per_key <= BYTES_PER_KEY, "{per_key} bytes per key");
    assert!(
        after <= BYTES_AFTER_BURST,
        "{after} bytes in use after a burst of {during} bytes"
    );
}
