//! A controller that watches and writes to another cluster.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use rbuilder::envtest::{ReservedPort, eventually};
use rbuilder::fake::{ApiServer, Fault};
use rbuilder::{
    Action, Cluster, ClusterConfig, Controller, Ctx, Manager, ManagerArgs, ManagerError, Result, Watch,
};
use serde_json::json;

use super::support::{State, change, copied, mirror, to_memo};
use crate::support::{
    Memo, Operator, Place, SOON, Seen, Server, config_map, copy, get, memo, on_both_servers,
};

on_both_servers!(
    copies_in_another_cluster_are_kept_up_to_date,
    lease_is_only_in_the_own_cluster,
    owners_in_another_cluster_are_refused,
);

/// Returns a manager with a controller that copies memos to the given cluster, and the statistics
/// of the controller.
fn mirroring(place: &Place, edge: &ApiServer, namespace: &str) -> (Manager, Cluster, Seen) {
    let mut manager = place.manager();
    let cluster = manager.cluster(ClusterConfig::from_client("edge", edge.client()));
    let (manager, seen) = add_mirror(manager, &cluster, namespace);
    (manager, cluster, seen)
}

fn add_mirror(manager: Manager, edge: &Cluster, namespace: &str) -> (Manager, Seen) {
    let state = State {
        edge: edge.clone(),
        namespace: namespace.to_owned(),
        seen: Seen::default(),
    };
    let seen = state.seen.clone();
    let copies = Watch::mapped(to_memo).in_cluster(edge);
    let controller = Controller::new(mirror, state).named("mirror").watch(copies);
    (manager.controller(controller), seen)
}

async fn copies_in_another_cluster_are_kept_up_to_date(server: Server) {
    let (place, edge) = (Place::new(server).await, ApiServer::new());
    let namespace = edge.namespace("copies");
    let (manager, cluster, _) = mirroring(&place, &edge, &namespace);
    let metrics = manager.metrics().clone();
    place.create(memo("a", "first")).await;
    let operator = Operator::start(manager);
    let is = async |text: &str| copied(edge.client(), &namespace, "a").await.as_deref() == Some(text);
    eventually(SOON, || is("first")).await;
    assert_eq!(place.copied("a").await, None, "in the own cluster");
    cluster.synced(SOON).await.unwrap();
    assert!(cluster.check().is_ok() && cluster.is_synced());

    place.change_text("a", "second").await;
    eventually(SOON, || is("second")).await;
    change(edge.client(), &namespace, "a", "by somebody else").await;
    eventually(SOON, || is("second")).await;
    let copies: Api<ConfigMap> = Api::namespaced(edge.client(), &namespace);
    copies.delete("a", &DeleteParams::default()).await.unwrap();
    eventually(SOON, || is("second")).await;

    // The copy appears on the server slightly earlier than in the process's cache.
    let lines = [
        "rbuilder_cluster_connected{cluster=\"edge\"} 1\n",
        "rbuilder_cache_objects{kind=\"ConfigMap\",content=\"whole\",selection=\"\",cluster=\"edge\"} 1\n",
        "rbuilder_cache_objects{kind=\"Memo.controllers.example.com\",content=\"whole\",selection=\"\",cluster=\"\"} 1\n",
    ];
    eventually(SOON, || async {
        let text = metrics.text();
        match lines.iter().find(|line| !text.contains(**line)) {
            None => Ok(()),
            Some(line) => Err(format!("{line} in {text}")),
        }
    })
    .await;
    operator.stop().await.unwrap();
}

async fn lease_is_only_in_the_own_cluster(server: Server) {
    let (place, edge) = (Place::new(server).await, ApiServer::new());
    let namespace = edge.namespace("copies");
    let args = ManagerArgs {
        watch_namespace: place.namespace.clone(),
        leader_elect: true,
        leader_election_namespace: Some(place.namespace.clone()),
        ..ManagerArgs::for_tests()
    };
    let mut manager = Manager::with_client("clusters.example.com", place.env.client(), args);
    let cluster = manager.cluster(ClusterConfig::from_client("edge", edge.client()));
    let (manager, _) = add_mirror(manager, &cluster, &namespace);
    place.create(memo("a", "text")).await;
    let operator = Operator::start(manager);
    eventually(SOON, || async {
        copied(edge.client(), &namespace, "a").await.is_some()
    })
    .await;
    assert!(place.api::<Lease>().get("clusters.example.com").await.is_ok());
    let leases: Api<Lease> = Api::all(edge.client());
    assert!(
        leases
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    operator.stop().await.unwrap();
}

/// The garbage collector would delete an object whose owner is in another cluster.
async fn owners_in_another_cluster_are_refused(server: Server) {
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<State>) -> Result {
        let edge = ctx.in_cluster(&ctx.edge);
        assert_eq!(edge.cluster(), Some(&ctx.edge));
        let child = || {
            let mut child = config_map("child", "");
            child.metadata.namespace = memo.namespace();
            child
        };
        let mut errors = vec![
            edge.apply_owned(&*memo, child()).await.unwrap_err(),
            edge.create_owned(&*memo, child()).await.unwrap_err(),
            edge.create_or_update_owned(&*memo, child(), |_| {})
                .await
                .unwrap_err(),
        ];
        for owner in edge.cached::<ConfigMap>()?.list() {
            let mut child = config_map("child", "");
            child.metadata.namespace = owner.namespace();
            errors.push(ctx.apply_owned(&*owner, child).await.unwrap_err());
        }
        for error in errors {
            ctx.seen.note(&error.to_string());
        }
        Ok(Action::await_change())
    }
    let (place, edge) = (Place::new(server).await, ApiServer::new());
    let namespace = edge.namespace("copies");
    let mut owner = config_map("owner", "");
    owner.metadata.namespace = Some(namespace.clone());
    let maps: Api<ConfigMap> = Api::namespaced(edge.client(), &namespace);
    maps.create(&Default::default(), &owner).await.unwrap();
    place.create(memo("a", "text")).await;

    let mut manager = place.manager();
    let cluster = manager.cluster(ClusterConfig::from_client("edge", edge.client()).required());
    let seen = Seen::default();
    let state = State {
        edge: cluster.clone(),
        namespace: namespace.clone(),
        seen: seen.clone(),
    };
    drop(cluster.cached::<ConfigMap>());
    let operator = Operator::start(manager.controller(Controller::new(reconcile, state)));
    let own = &place.namespace;
    let there = format!(
        "Memo {own}/a of the manager's own cluster cannot own ConfigMap {own}/child in the cluster `edge`: owner references \
         do not reach other clusters; apply it without an owner and with a label or an annotation that names Memo {own}/a, \
         map it back with `Watch::in_cluster`, and delete it in a finalizer"
    );
    eventually(SOON, || async { seen.count(&there) == 3 }).await;
    let here = format!(
        "ConfigMap {namespace}/owner of the cluster `edge` cannot own ConfigMap {namespace}/child in the manager's own \
         cluster: owner references do not reach other clusters; apply it without an owner and with a label or an \
         annotation that names ConfigMap {namespace}/owner, map it back with `Watch::in_cluster`, and delete it in a \
         finalizer"
    );
    eventually(SOON, || async { seen.count(&here) == 1 }).await;
    operator.stop().await.unwrap();
    assert_eq!(place.copied("child").await, None);
}

/// Work that doesn't depend on an unreachable cluster continues. The rest is done once the cluster
/// is back.
#[tokio::test(start_paused = true)]
async fn unreachable_cluster_does_not_stop_other_work() {
    let (place, edge) = (Place::new(Server::fake()).await, ApiServer::new());
    let namespace = edge.namespace("copies");
    let (manager, cluster, seen) = mirroring(&place, &edge, &namespace);
    let metrics = manager.metrics().clone();
    // This controller doesn't need the other cluster.
    let manager = manager.controller(Controller::new(copy, Seen::default()).owns::<ConfigMap>());
    let operator = Operator::start(manager);
    place.create(memo("a", "text")).await;
    let is_copied = async |name: &str| copied(edge.client(), &namespace, name).await.is_some();
    eventually(SOON, || is_copied("a")).await;

    edge.inject(Fault::disconnect().always());
    edge.drop_watches();
    place.create(memo("b", "text")).await;
    let hour = Duration::from_secs(3600);
    eventually(hour, || async { place.copied("b").await.is_some() }).await;
    // Longer than the maximum backoff. Probes don't get a response, either.
    for _ in 0..240 {
        tokio::time::sleep(hour / 240).await;
        assert!(cluster.check().is_err());
    }
    let error = cluster.check().unwrap_err().to_string();
    assert!(
        error.starts_with("the cluster `edge` is not connected: "),
        "{error}"
    );
    assert!(
        metrics
            .text()
            .contains("rbuilder_cluster_connected{cluster=\"edge\"} 0\n")
    );
    assert!(!operator.ended.is_finished());
    assert!(cluster.is_synced(), "the caches show the last known state");
    let failed = seen.count("b");
    assert!(failed > 5, "retried with back-off: {failed}");

    edge.heal();
    // Shorter than the backoff, which is at 1000 s by now. Watches are retried after at most 30 s.
    eventually(Duration::from_secs(60), || is_copied("b")).await;
    assert!(cluster.check().is_ok());
    // Watches work again, too.
    change(edge.client(), &namespace, "a", "by somebody else").await;
    let text = async || copied(edge.client(), &namespace, "a").await;
    eventually(hour, || async { text().await.as_deref() == Some("text") }).await;
    operator.stop().await.unwrap();
}

#[tokio::test]
async fn debug_endpoints_show_other_clusters() {
    let place = Place::new(Server::fake()).await;
    let (edge, far) = (ApiServer::new(), ApiServer::new());
    far.inject(Fault::disconnect().always());
    let reserved = ReservedPort::reserve().unwrap();
    let address = format!("127.0.0.1:{}", reserved.number());
    let args = ManagerArgs {
        watch_namespace: place.namespace.clone(),
        metrics_bind_address: address.clone(),
        metrics_secure: false,
        enable_debug_endpoints: true,
        ..ManagerArgs::for_tests()
    };
    let mut manager = Manager::with_client("clusters.example.com", place.env.client(), args);
    let cluster = manager.cluster(ClusterConfig::from_client("edge", edge.client()));
    let far = manager.cluster(ClusterConfig::from_client("far", far.client()));
    let _cached = far.cached::<ConfigMap>();
    let (manager, _) = add_mirror(manager, &cluster, "copies");
    let operator = Operator::start(manager);
    let ask = async |path: &str| {
        let answer = get(&address, path).await.unwrap_or_default();
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        body.unwrap_or_default()
    };
    let text = eventually(SOON, || async {
        let text = ask("/debug/clusters").await;
        match text.starts_with("edge: connected, synced\n  ConfigMap: whole, synced, objects 0, ")
            && text.contains("\nfar: not connected (")
        {
            true => Ok(text),
            false => Err(text),
        }
    })
    .await;
    assert!(
        text.contains("), not synced\n  ConfigMap: whole, not synced, "),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&ask("/debug/clusters?format=json").await).unwrap();
    assert_eq!(
        (
            &json[0]["name"],
            &json[0]["connected"],
            &json[0]["watches"][0]["kind"]
        ),
        (&json!("edge"), &json!(true), &json!("ConfigMap")),
    );
    assert!(
        json[1]["problem"].is_string() && json[1]["connected"] == false,
        "{json}"
    );
    assert!(
        !ask("/debug/caches").await.contains("ConfigMap"),
        "they are those of the own cluster"
    );
    operator.stop().await.unwrap();
}

/// Until the caches of a cluster have synced, it must not look empty.
#[tokio::test(start_paused = true)]
async fn manager_starts_without_its_other_clusters() {
    let (place, edge) = (Place::new(Server::fake()).await, ApiServer::new());
    let namespace = edge.namespace("copies");
    edge.inject(Fault::disconnect().always());
    let (manager, cluster, seen) = mirroring(&place, &edge, &namespace);
    let manager = manager.controller(Controller::new(copy, Seen::default()).owns::<ConfigMap>());
    place.create(memo("a", "text")).await;
    let operator = Operator::start(manager);
    eventually(SOON, || async { place.copied("a").await.is_some() }).await;
    eventually(SOON, || async { seen.count("a") > 1 }).await;
    assert!(!cluster.is_synced());
    let error = cluster
        .synced(Duration::from_secs(1))
        .await
        .unwrap_err()
        .to_string();
    let expected = "timed out after 1s waiting for the cluster `edge`: ";
    assert!(error.starts_with(expected), "{error}");
    edge.heal();
    eventually(Duration::from_secs(60), || async {
        copied(edge.client(), &namespace, "a").await.is_some()
    })
    .await;
    operator.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn missing_required_cluster_is_an_error_that_names_it() {
    let (place, edge) = (Place::new(Server::fake()).await, ApiServer::new());
    edge.inject(Fault::disconnect().always());
    let mut manager = place.manager();
    let cluster = manager.cluster(ClusterConfig::from_client("edge", edge.client()).required());
    let (manager, seen) = add_mirror(manager, &cluster, "copies");
    place.create(memo("a", "text")).await;
    let error = manager.start_until(std::future::pending()).await.unwrap_err();
    match error.downcast_ref::<ManagerError>() {
        Some(ManagerError::ClusterSync { cluster, .. }) => assert_eq!(cluster, "edge"),
        _ => panic!("{error}"),
    }
    assert_eq!(seen.count("a"), 0, "no controller was started");
}

#[tokio::test]
async fn duplicate_cluster_name_is_an_error() {
    let (place, edge) = (Place::new(Server::fake()).await, ApiServer::new());
    let mut manager = place.manager();
    for _ in 0..2 {
        manager.cluster(ClusterConfig::from_client("edge", edge.client()));
    }
    let error = manager.start_until(std::future::pending()).await.unwrap_err();
    let expected = "duplicate cluster name `edge`; give one of them another name";
    assert_eq!(error.to_string(), expected);
}

/// A reconcile can also add watches in another cluster.
#[tokio::test]
async fn late_watches_can_be_in_another_cluster() {
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<State>) -> Result {
        let edge = ctx.in_cluster(&ctx.edge);
        let watch = || Watch::mapped(to_memo);
        edge.watch("copies", watch())?;
        // No-op, because it's the same watch.
        ctx.watch("copies", watch().in_cluster(&ctx.edge))?;
        let owned = edge.watch("owned", Watch::<Secret>::owned()).unwrap_err();
        ctx.seen.note(&owned.to_string());
        ctx.seen.note(&memo.name_any());
        Ok(Action::await_change())
    }
    let (place, edge) = (Place::new(Server::fake()).await, ApiServer::new());
    let namespace = edge.namespace("copies");
    let mut manager = place.manager();
    let seen = Seen::default();
    let state = State {
        edge: manager.cluster(ClusterConfig::from_client("edge", edge.client())),
        namespace: namespace.clone(),
        seen: seen.clone(),
    };
    let operator = Operator::start(manager.controller(Controller::new(reconcile, state)));
    let created = place.create(memo("a", "text")).await;
    eventually(SOON, || async { seen.count("a") == 1 }).await;
    let refused = "owner references do not reach other clusters: watch Secret (v1) in the cluster `edge` with `Watch::mapped`";
    assert_eq!(seen.count(refused), 1);
    let copies: Api<ConfigMap> = Api::namespaced(edge.client(), &namespace);
    let copy = super::support::copy_of(&created, &namespace);
    copies.create(&Default::default(), &copy).await.unwrap();
    eventually(SOON, || async { seen.count("a") == 2 }).await;
    assert_eq!(seen.count("mapped a"), 1);
    operator.stop().await.unwrap();
}
