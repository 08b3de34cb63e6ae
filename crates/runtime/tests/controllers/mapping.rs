//! Mapping functions that fail.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::PostParams;
use rbuilder::envtest::ReservedPort;
use rbuilder::testing::eventually;
use rbuilder::{Controller, Ctx, Manager, ManagerArgs, ObjectRef, Result, Watch};

use crate::support::{Memo, Operator, Place, SOON, Seen, Server, config_map, copy, get};

/// Nothing defines the index.
fn memos_of(map: &ConfigMap, ctx: &Ctx<Seen>) -> Result<Vec<ObjectRef<Memo>>> {
    let memos = ctx.cached::<Memo>()?.by("map", &map.name_any())?;
    Ok(memos.iter().map(|memo| ObjectRef::from_obj(&**memo)).collect())
}

fn memos_or_nothing(map: &ConfigMap, ctx: &Ctx<Seen>) -> Vec<ObjectRef<Memo>> {
    memos_of(map, ctx).unwrap_or_default()
}

/// Whether the function propagates the error or ignores it makes no difference.
async fn check(controller: Controller<Memo, Seen>) {
    let place = Place::new(Server::fake()).await;
    let reserved = ReservedPort::reserve().unwrap();
    let args = ManagerArgs {
        watch_namespace: place.namespace.clone(),
        metrics_bind_address: format!("127.0.0.1:{}", reserved.number()),
        metrics_secure: false,
        enable_debug_endpoints: true,
        ..ManagerArgs::for_tests()
    };
    let address = args.metrics_bind_address.clone();
    let manager = Manager::with_client("mapping.example.com", place.env.client(), args);
    let manager = manager.controller(controller).grace_period(Duration::ZERO);
    let operator = Operator::start(manager);
    let none = "rbuilder_mapping_errors_total{controller=\"memo\"} 0\n";
    let ask = async |path: &str| get(&address, path).await.unwrap_or_default();
    eventually(SOON, || async { ask("/metrics").await.contains(none) }).await;
    let maps = place.api::<ConfigMap>();
    maps.create(&PostParams::default(), &config_map("a", "text"))
        .await
        .unwrap();
    eventually(SOON, || async {
        let text = ask("/metrics").await;
        text.contains("rbuilder_mapping_errors_total{controller=\"memo\"} ") && !text.contains(none)
    })
    .await;
    let text = ask("/debug/queues").await;
    let expected = format!(
        "last: ConfigMap {}/a: the cache of Memo has no index `map`; add it with",
        place.namespace
    );
    assert!(
        text.contains("errors of mapping functions ") && text.contains(&expected),
        "{text}"
    );
    operator.stop().await.unwrap();
}

#[tokio::test]
async fn error_of_a_mapping_function_is_counted_and_shown() {
    check(Controller::new(copy, Seen::default()).try_watches(memos_of)).await;
    check(Controller::new(copy, Seen::default()).watch(Watch::try_mapped(memos_of))).await;
}

#[tokio::test]
async fn missing_index_is_counted_even_if_the_mapping_function_ignores_it() {
    check(Controller::new(copy, Seen::default()).watches(memos_or_nothing)).await;
}
