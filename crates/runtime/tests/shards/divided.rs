//! Ways to distribute objects other than by UID, and which objects replicas receive and read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::ResourceExt;
use kube::api::DeleteParams;
use rbuilder::fake::{ApiServer, Verb};
use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, Result, ShardBy};
use tokio::time::sleep;

use crate::fleet::{DIVISIONS, Fleet, namespace_of};

const SECOND: Duration = Duration::from_secs(1);

/// Returns the values of a parameter in all watches of Secrets.
fn watched_secrets(server: &ApiServer, parameter: &str) -> BTreeSet<String> {
    let requests = server.requests().into_iter();
    let watches = requests.filter(|request| request.verb == Verb::Watch && request.resource == "secrets");
    watches
        .map(|request| request.parameter(parameter).to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn namespace_has_one_replica() {
    for sharding in [true, false] {
        let fleet =
            Fleet::configured(3, sharding, |controller| controller.shard_by(ShardBy::Namespace)).await;
        fleet.create_many(64).await;
        fleet.reconciled().await;
        fleet.check();
        let mut replicas: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        for (name, (_, replica)) in &fleet.record.lock().unwrap().last {
            replicas.entry(namespace_of(name)).or_default().insert(*replica);
        }
        assert_eq!(replicas.len(), 8);
        assert!(
            replicas.values().all(|replicas| replicas.len() == 1),
            "{replicas:?}"
        );
        let all: BTreeSet<_> = replicas.values().flatten().collect();
        assert!(all.len() > 1, "{replicas:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn replicas_select_owned_objects_by_namespace() {
    let fleet = Fleet::configured(2, true, |controller| controller.shard_by(ShardBy::Namespace)).await;
    let selectors = watched_secrets(&fleet.server, "shardSelector");
    assert!(selectors.len() > 1, "{selectors:?}");
    for selector in selectors {
        assert!(
            selector.starts_with("shardRange(object.metadata.namespace, "),
            "{selector}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_child_is_restored_however_objects_are_divided() {
    for configure in DIVISIONS {
        for sharding in [true, false] {
            let fleet = Fleet::configured(3, sharding, configure).await;
            let names = fleet.create_many(24).await;
            fleet.reconciled().await;
            sleep(SECOND).await;
            for name in &names {
                let secrets = fleet.secrets(name);
                secrets.delete(name, &DeleteParams::default()).await.unwrap();
            }
            sleep(5 * SECOND).await;
            assert_eq!(fleet.children().await.len(), 24);
            fleet.check();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn replicas_select_labelled_objects_of_their_owners() {
    let fleet = Fleet::configured(2, false, |controller| controller.label_owned()).await;
    fleet.create_many(24).await;
    fleet.reconciled().await;
    let values: BTreeSet<String> = fleet
        .children()
        .await
        .iter()
        .map(|child| child.labels()["rbuilder.dev/owner-shard"].clone())
        .collect();
    // There are 256 labels, so hardly any two of the 24 objects share one.
    assert!(values.len() > 12, "{values:?}");
    let selectors = watched_secrets(&fleet.server, "labelSelector");
    let halves = selectors
        .iter()
        .filter(|selector| selector.contains(" in ("))
        .count();
    assert!(halves >= 2, "{selectors:?}");
    assert!(
        selectors
            .iter()
            .all(|selector| selector.starts_with("rbuilder.dev/owner-shard")),
        "{selectors:?}"
    );
}

/// E.g. because the setting was enabled for an existing operator.
#[tokio::test(start_paused = true)]
async fn objects_without_the_label_get_it_with_the_next_apply() {
    let mut fleet = Fleet::of(1, false).await;
    let names = fleet.create_many(8).await;
    fleet.reconciled().await;
    fleet.stop(0).running.await.unwrap().unwrap();
    let without = fleet.children().await;
    assert!(without.iter().all(|child| child.labels().is_empty()));

    fleet.configure = Box::new(|controller| controller.label_owned());
    fleet.start();
    sleep(40 * SECOND).await;
    let labelled = fleet.children().await;
    for (before, after) in without.iter().zip(&labelled) {
        assert_eq!(before.uid(), after.uid());
        assert!(after.labels().contains_key("rbuilder.dev/owner-shard"));
    }
    // From now on, the replica receives its objects by label.
    fleet.record.lock().unwrap().clear();
    let secrets = fleet.secrets(&names[0]);
    secrets.delete(&names[0], &DeleteParams::default()).await.unwrap();
    sleep(5 * SECOND).await;
    assert!(secrets.get_opt(&names[0]).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn cached_everywhere_has_the_objects_of_all_replicas() {
    let mut fleet = Fleet::new(true);
    fleet.configure = Box::new(|controller| controller.reads::<ConfigMap>());
    fleet.start();
    fleet.start();
    sleep(40 * SECOND).await;
    fleet.create_many(20).await;
    fleet.reconciled().await;
    let seen = fleet.record.lock().unwrap().everywhere.clone();
    assert_eq!(seen.last(), Some(&Ok(20)), "{seen:?}");

    // Without `reads`, the cache only contains the objects of this replica.
    let fleet = Fleet::of(2, true).await;
    fleet.create_many(2).await;
    sleep(SECOND).await;
    let seen = fleet.record.lock().unwrap().everywhere.clone();
    let expected = "no cache for ConfigMap (v1) of all replicas: this replica has its share only; add \
                    `.reads::<ConfigMap>()` to the controller";
    assert_eq!(seen.last(), Some(&Err(expected.to_owned())));
}

async fn reconcile(_: Arc<Namespace>, _: Ctx<()>) -> Result {
    Ok(Action::await_change())
}

#[tokio::test]
async fn kind_without_namespaces_is_not_divided_by_namespace() {
    let server = ApiServer::new();
    let controller = Controller::new(reconcile, ())
        .owns::<Secret>()
        .shard_by(ShardBy::Namespace);
    let manager = Manager::with_client("divided", server.client(), ManagerArgs::for_tests());
    let started = manager.controller(controller).start_until(std::future::pending());
    assert_eq!(
        started.await.unwrap_err().to_string(),
        "cannot divide Namespace (v1) by namespace, because it has none; remove `.shard_by(…)` from the controller"
    );
}
