//! The memory of a cached object and the allocations of a reconcile. Neither depends on the machine, so an increase fails
//! here. `cargo xtask bench-operator` measures the rest.
//!
//! The file has a single test, because all tests of a program share the counting allocator.

use std::alloc::System;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::client::Body;
use rbuilder::envtest::eventually;
use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, ObjectRef, Result, trigger};
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Maximum size in bytes of a cached ConfigMap with 200 bytes of data, two labels and an annotation. The maps take two
/// thirds of it: a node of a `BTreeMap<String, String>` has 544 bytes, whatever its contents.
const BYTES_PER_OBJECT: usize = 2800;
/// Maximum number of allocations of a reconcile that does nothing, from the queue and back.
const ALLOCATIONS_PER_RECONCILE: usize = 12;

const SOON: Duration = Duration::from_secs(60);

/// A list as the API server sends it, of which an operator does not need more than half.
fn list(objects: usize) -> String {
    let object = |number: usize| {
        let fields =
            json!({ "f:data": { "f:text": {} }, "f:metadata": { "f:labels": { "f:a": {}, "f:b": {} } } });
        json!({
            "metadata": {
                "name": format!("object-{number:06}"),
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
    let items: Vec<_> = (0..objects).map(object).collect();
    json!({ "kind": "ConfigMapList", "apiVersion": "v1", "metadata": { "resourceVersion": "1000000" }, "items": items })
        .to_string()
}

/// An API server with these objects, which never change.
fn server(objects: usize) -> Client {
    let list = Bytes::from(list(objects));
    let answer = move |request: Request<Body>| {
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"));
        let body = if is_watch {
            let silence = futures::stream::pending::<std::result::Result<Frame<Bytes>, Infallible>>();
            StreamBody::new(silence).boxed()
        } else {
            Full::new(list.clone()).boxed()
        };
        std::future::ready(Ok::<_, Infallible>(Response::new(body)))
    };
    Client::new(tower::service_fn(answer), "default")
}

async fn count(_object: Arc<ConfigMap>, ctx: Ctx<Arc<AtomicUsize>>) -> Result {
    ctx.fetch_add(1, Ordering::Relaxed);
    Ok(Action::await_change())
}

async fn reach(reconciled: &AtomicUsize, expected: usize) {
    eventually(SOON, || async { reconciled.load(Ordering::Relaxed) >= expected }).await;
}

/// Returns the bytes in use after reconciling this many objects, and the allocations of reconciling them again.
async fn cost(objects: usize) -> (usize, usize) {
    let client = server(objects);
    let reconciled = Arc::new(AtomicUsize::new(0));
    let (again, triggers) = trigger::channel();
    let controller = Controller::new(count, Arc::clone(&reconciled)).triggers(triggers);
    let before = Region::new(ALLOCATOR);
    let manager =
        Manager::with_client("cost.example.com", client, ManagerArgs::for_tests()).controller(controller);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(manager.start_until(async {
        let _ = stopped.await;
    }));
    reach(&reconciled, objects).await;
    let change = before.change();
    let kept = change.bytes_allocated.saturating_sub(change.bytes_deallocated);

    let references: Vec<_> = (0..objects)
        .map(|number| ObjectRef::<ConfigMap>::new(&format!("object-{number:06}")).within("default"))
        .collect();
    let before = Region::new(ALLOCATOR);
    for reference in references {
        again.send(reference).await;
    }
    reach(&reconciled, 2 * objects).await;
    let change = before.change();
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    (kept, change.allocations + change.reallocations)
}

#[tokio::test]
async fn an_object_and_a_reconcile_cost_what_they_did() {
    let (few, few_allocations) = cost(200).await;
    let (many, many_allocations) = cost(2200).await;
    let per_object = many.saturating_sub(few) / 2000;
    let per_reconcile = many_allocations.saturating_sub(few_allocations) / 2000;
    assert!(
        per_object <= BYTES_PER_OBJECT,
        "{per_object} bytes kept per object"
    );
    assert!(
        per_reconcile <= ALLOCATIONS_PER_RECONCILE,
        "{per_reconcile} allocations per reconcile"
    );
}
