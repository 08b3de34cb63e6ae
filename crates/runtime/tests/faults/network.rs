//! Faults between an operator and a working API server.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DeleteParams;
use rbuilder::envtest::{Environment, eventually};
use tokio::time::sleep;

use super::proxy::{Fault, Proxy, closed};
use super::scene::Scene;

const WHILE: Duration = Duration::from_secs(5);
const SOON: Duration = Duration::from_secs(20);

/// Users modify objects while `fault` is happening to the operator.
async fn survives(env: Environment, seed: u64, fault: impl AsyncFnOnce(&Proxy)) {
    let scene = Scene::new(env, seed).await;
    let proxy = scene.proxy().await;
    let operator = scene.operator(&proxy);
    scene.begin().await;
    let before = (proxy.injected(), scene.watchman.reconciles());

    let people = scene.busy();
    fault(&proxy).await;
    proxy.heal();
    let changes = people.rest().await;

    scene.converges().await;
    let faults = proxy.injected() - before.0;
    println!(
        "{changes} changes, {faults} faults, {} reconciles, {} requests",
        scene.watchman.reconciles() - before.1,
        proxy.requests()
    );
    assert!(changes > 0 && faults > 0);
    assert!(!operator.ended.is_finished());
    operator.stop().await.unwrap();
    // The proxy can't detect when a silenced connection is closed.
    proxy.restore();
    assert!(
        closed(&proxy, SOON).await,
        "{} connections are left",
        proxy.open()
    );
}

/// Closes all watches. For some seconds, each fault happens with the given probability, also to new
/// watches.
async fn survives_all(env: Environment, seed: u64, faults: impl Into<Vec<(f64, Fault)>>) {
    survives(env, seed, async |proxy| {
        proxy.inject(faults);
        proxy.expire_watches();
        sleep(WHILE).await;
    })
    .await;
}

#[rbuilder::envtest::test]
async fn survives_connection_resets(env: Environment) {
    survives(env, 1, async |proxy| {
        for _ in 0..10 {
            sleep(WHILE / 20).await;
            proxy.reset_some(0.5);
            sleep(WHILE / 20).await;
            proxy.reset_all();
        }
    })
    .await;
}

#[rbuilder::envtest::test]
async fn survives_lost_and_truncated_responses(env: Environment) {
    let faults = [
        (0.1, Fault::Reset),
        (0.1, Fault::LoseAnswer),
        (0.15, Fault::CutAnswer),
    ];
    survives_all(env, 2, faults).await;
}

#[rbuilder::envtest::test]
async fn survives_429_with_retry_after(env: Environment) {
    survives_all(env, 3, [(0.4, Fault::Refuse(StatusCode::TOO_MANY_REQUESTS))]).await;
}

#[rbuilder::envtest::test]
async fn survives_500(env: Environment) {
    survives_all(env, 4, [(0.4, Fault::Refuse(StatusCode::INTERNAL_SERVER_ERROR))]).await;
}

#[rbuilder::envtest::test]
async fn survives_503_for_all_requests(env: Environment) {
    survives_all(env, 5, [(1.0, Fault::Refuse(StatusCode::SERVICE_UNAVAILABLE))]).await;
}

#[rbuilder::envtest::test]
async fn survives_slow_responses(env: Environment) {
    survives_all(env, 6, [(0.3, Fault::Delay(Duration::from_secs(2)))]).await;
}

#[rbuilder::envtest::test]
async fn survives_watches_that_end(env: Environment) {
    survives_all(env, 7, [(0.9, Fault::EndWatch)]).await;
}

#[rbuilder::envtest::test]
async fn survives_expired_watches(env: Environment) {
    survives_all(env, 8, [(0.7, Fault::ExpireWatch)]).await;
}

/// API servers other than kube-apiserver respond like this.
#[rbuilder::envtest::test]
async fn survives_watches_rejected_as_expired(env: Environment) {
    survives(env, 9, async |proxy| {
        let is_watch =
            |parts: &http::request::Parts| parts.uri.query().unwrap_or_default().contains("watch=true");
        proxy.inject_where(is_watch, [(1.0, Fault::Refuse(StatusCode::GONE))]);
        proxy.reset_all();
        sleep(WHILE).await;
    })
    .await;
}

/// No data is transferred for a while, and then all of it at once.
#[rbuilder::envtest::test]
async fn survives_a_temporary_silence(env: Environment) {
    survives(env, 10, async |proxy| {
        proxy.fall_silent();
        sleep(2 * WHILE).await;
        proxy.restore();
    })
    .await;
}

/// Connections stay open but deliver nothing. The operator gives up on them after 95 s.
#[rbuilder::envtest::test]
async fn survives_silently_dropped_connections(env: Environment) {
    let started = std::time::Instant::now();
    survives(env, 11, async |proxy| {
        proxy.silence_connections();
        sleep(WHILE).await;
    })
    .await;
    println!("noticed and done after {:?}", started.elapsed());
}

/// No list contains the copy after the gap, but the operator remembers creating it.
#[rbuilder::envtest::test]
async fn restores_a_copy_deleted_while_its_watch_was_down(env: Environment) {
    let scene = Scene::new(env, 12).await;
    let proxy = scene.proxy().await;
    let operator = scene.operator(&proxy);
    scene.begin().await;

    let of_copies = |parts: &http::request::Parts| parts.uri.path().ends_with("/configmaps");
    proxy.inject_where(
        of_copies,
        [(1.0, Fault::Refuse(StatusCode::INTERNAL_SERVER_ERROR))],
    );
    proxy.expire_watches();
    eventually(SOON, || async { proxy.injected() > 0 }).await;
    scene.create("brief", "here and gone").await;
    let copies = scene.api::<ConfigMap>();
    eventually(SOON, || copies.get("brief")).await;
    // Wait until the operator is idle, since its own writes trigger another reconcile.
    sleep(Duration::from_secs(2)).await;
    copies.delete("brief", &DeleteParams::default()).await.unwrap();
    proxy.heal();

    scene.converges().await;
    operator.stop().await.unwrap();
}
