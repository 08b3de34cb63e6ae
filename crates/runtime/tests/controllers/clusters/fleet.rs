//! Clusters that are added and removed while the manager is running.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use rbuilder::envtest::eventually;
use rbuilder::fake::ApiServer;
use rbuilder::{Action, Cluster, ClusterConfig, Controller, Ctx, ObjectRef, Result, Watch};

use crate::support::{Memo, Operator, Place, SOON, Seen, Server, config_map, memo};

struct Member {
    server: ApiServer,
    namespace: String,
}

impl Member {
    fn new() -> Self {
        let server = ApiServer::new();
        let namespace = server.namespace("fleet");
        Self { server, namespace }
    }

    async fn create(&self, name: &str) {
        let maps: Api<ConfigMap> = Api::namespaced(self.server.client(), &self.namespace);
        maps.create(&PostParams::default(), &config_map(name, ""))
            .await
            .unwrap();
    }

    fn config(&self, name: &str) -> ClusterConfig {
        ClusterConfig::from_client(name, self.server.client())
    }
}

async fn note(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    ctx.note(&memo.name_any());
    Ok(Action::await_change())
}

/// Starts a controller that watches ConfigMaps in all clusters.
async fn start(place: &Place, seen: &Seen) -> (Operator, rbuilder::Clusters, rbuilder::metrics::Metrics) {
    let watched = place.create(memo("fleet", "")).await;
    let memo = ObjectRef::from_obj(&watched);
    let controller = Controller::new(note, seen.clone()).watch_clusters(move |cluster: &Cluster| {
        let (name, memo) = (cluster.name().to_owned(), memo.clone());
        Watch::mapped(move |map: &ConfigMap, ctx: &Ctx<Seen>| {
            ctx.note(&format!("{name} has {}", map.name_any()));
            vec![memo.clone()]
        })
    });
    let manager = place.manager().controller(controller);
    let (clusters, metrics) = (manager.clusters(), manager.metrics().clone());
    (Operator::start(manager), clusters, metrics)
}

#[tokio::test]
async fn added_cluster_is_watched_until_it_is_removed() {
    let place = Place::new(Server::fake()).await;
    let (seen, [east, west]) = (Seen::default(), [Member::new(), Member::new()]);
    let (operator, clusters, metrics) = start(&place, &seen).await;
    eventually(SOON, || async { seen.count("fleet") == 1 }).await;

    east.create("first").await;
    let cluster = clusters.add(east.config("east"));
    clusters.add(west.config("west"));
    cluster.synced(SOON).await.unwrap();
    west.create("other").await;
    eventually(SOON, || async {
        seen.count("east has first") == 1 && seen.count("west has other") == 1
    })
    .await;
    let names: Vec<String> = clusters
        .list()
        .iter()
        .map(|cluster| cluster.name().to_owned())
        .collect();
    assert_eq!(names, ["east", "west"]);

    assert!(clusters.remove("east") && !clusters.remove("east"));
    assert!(clusters.get("east").is_none());
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), &east.namespace);
    let error = maps.get("first").await.unwrap_err().to_string();
    let expected = "the cluster `east` is not connected: it was removed from the manager";
    assert!(error.contains(expected), "{error}");
    east.create("unseen").await;
    west.create("second").await;
    eventually(SOON, || async { seen.count("west has second") == 1 }).await;
    assert_eq!(seen.count("east has unseen"), 0);
    let text = metrics.text();
    assert!(
        text.contains("rbuilder_cluster_connected{cluster=\"west\"} 1\n"),
        "{text}"
    );
    assert!(
        !text.contains("rbuilder_cluster_connected{cluster=\"east\"}"),
        "{text}"
    );

    // A new cluster gets its own cache, even if it has the same name.
    let again = clusters.add(east.config("east"));
    assert_ne!(again, cluster);
    eventually(SOON, || async { seen.count("east has unseen") == 1 }).await;
    operator.stop().await.unwrap();
}

/// Resource versions of two clusters are unrelated, even if both have the same name.
#[tokio::test]
async fn replaced_cluster_is_listed_again() {
    let place = Place::new(Server::fake()).await;
    let (seen, [old, new]) = (Seen::default(), [Member::new(), Member::new()]);
    let (operator, clusters, _) = start(&place, &seen).await;
    for name in ["a", "b", "c"] {
        old.create(name).await;
    }
    let cluster = clusters.add(old.config("edge"));
    let maps = cluster.cached::<ConfigMap>();
    let names = || maps.list().iter().map(|map| map.name_any()).collect::<Vec<_>>();
    eventually(SOON, || async { names() == ["a", "b", "c"] }).await;

    new.create("d").await;
    assert_eq!(clusters.add(new.config("edge")), cluster);
    eventually(SOON, || async { names() == ["d"] }).await;
    assert_eq!(seen.count("edge has d"), 1);
    old.create("e").await;
    new.create("f").await;
    eventually(SOON, || async { names() == ["d", "f"] }).await;
    operator.stop().await.unwrap();
}

#[tokio::test]
async fn reconcile_function_runs_without_a_manager() {
    let (own, member) = (ApiServer::new(), Member::new());
    let mut cached = config_map("cached", "");
    cached.metadata.namespace = Some(member.namespace.clone());
    let edge = Cluster::new("edge", member.server.client()).caching([cached]);
    let ctx = Ctx::new(own.client(), "test", edge);
    let there = ctx.in_cluster(&ctx);
    assert_eq!(there.cached::<ConfigMap>().unwrap().len(), 1);
    let mut map = config_map("written", "");
    map.metadata.namespace = Some(member.namespace.clone());
    there.apply(map).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(member.server.client(), &member.namespace);
    assert!(maps.get("written").await.is_ok());
    let error = there.cached::<Memo>().unwrap_err();
    assert!(error.is_terminal());
    let expected = "no cache for Memo (controllers.example.com/v1) in the cluster `edge`: ";
    assert!(error.to_string().starts_with(expected), "{error}");
}
