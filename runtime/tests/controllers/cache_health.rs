//! Metrics and readiness of caches, and how they list.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::runtime::watcher::{InitialListStrategy, ListSemantic};
use rbuilder::envtest::ReservedPort;
use rbuilder::testing::eventually;
use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, Result};

use crate::support::{Memo, Operator, Place, SOON, Seen, Server, copy, get, memo, on_both_servers};

on_both_servers!(
    caches_are_measured,
    a_streaming_list_and_small_pages_deliver_all_objects,
);

async fn look(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    ctx.note(&memo.name_any());
    Ok(Action::await_change())
}

async fn caches_are_measured(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("a", "text")).await;
    let controller = Controller::new(copy, Seen::default()).owns::<ConfigMap>();
    let manager = place.manager().controller(controller);
    let metrics = manager.metrics().clone();
    let operator = Operator::start(manager);
    eventually(SOON, || async { place.copied("a").await.is_some() }).await;
    place.create(memo("b", "text")).await;
    let memos = r#"{kind="Memo.controllers.example.com",content="whole",selection=""}"#;
    let maps = r#"{kind="ConfigMap",content="metadata",selection=""}"#;
    eventually(SOON, || async {
        let text = metrics.text();
        text.contains(&format!("rbuilder_cache_objects{memos} 2\n"))
            // One of each memo; the API server adds one with its certificate to each namespace.
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

async fn a_streaming_list_and_small_pages_deliver_all_objects(server: Server) {
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
    // kube-apiserver waits for etcd to confirm its progress, which Debian's etcd 3.4 does not do on request. Another one,
    // as `cargo xtask bench-operator` builds it, can be named for this test.
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

/// A cache that receives nothing makes its process unready, and ready again once it receives something.
#[tokio::test]
async fn a_stale_cache_fails_readiness() {
    let place = Place::new(Server::fake()).await;
    let reserved = ReservedPort::reserve().unwrap();
    let address = format!("127.0.0.1:{}", reserved.number());
    let args = ManagerArgs {
        watch_namespace: place.namespace.clone(),
        health_probe_bind_address: address.clone(),
        ..ManagerArgs::for_tests()
    };
    let seen = Seen::default();
    let manager = Manager::with_client("stale.example.com", place.env.client(), args)
        .cache_stale_after(Duration::from_secs(2))
        .controller(Controller::new(look, seen.clone()));
    let operator = Operator::start(manager);
    let status = |expected: &'static str| {
        let address = &address;
        async move {
            eventually(SOON, || async {
                let response = get(address, "/readyz/caches").await;
                response.is_ok_and(|response| response.contains(expected))
            })
            .await;
        }
    };
    status(" 200 ").await;
    status(" 500 ").await;
    place.create(memo("news", "")).await;
    status(" 200 ").await;
    operator.stop().await.unwrap();
}
