// SPDX-License-Identifier: Apache-2.0

//! The operator in a test environment with controllers and nodes, where Deployments create Pods as
//! in a cluster.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use memcached_operator::api::v1alpha1::{Memcached, MemcachedSpec};
use memcached_operator::controller;
use rbuilder::envtest::{Environment, eventually};
use rbuilder::{Manager, ManagerArgs, conditions, testing};
use serde_json::json;

/// Longer than anything except garbage collection takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Long enough for the garbage collector, which discovers the kinds of new CRDs every 30 seconds
/// and retries failed deletions.
const COLLECTION: Duration = Duration::from_secs(180);

const NAME: &str = "sample";

/// The APIs of the namespace that the operator watches.
struct Cluster {
    memcacheds: Api<Memcached>,
    deployments: Api<Deployment>,
    replica_sets: Api<ReplicaSet>,
    pods: Api<Pod>,
}

impl Cluster {
    /// Waits until the Memcached is available with this number of Pods, all of them ready and
    /// scheduled.
    async fn await_size(&self, size: usize) {
        let message = format!("{size} of {size} replicas are ready");
        eventually(LONG, || async {
            let memcached = self.memcacheds.get(NAME).await.unwrap();
            let conditions = memcached.status.unwrap_or_default().conditions;
            match conditions::find(&conditions, "Available") {
                Some(found) if found.status == "True" && found.message == message => Ok(()),
                found => Err(format!("expected True ({message}), found {found:?}")),
            }
        })
        .await;
        eventually(LONG, || async {
            let pods = self.pods.list(&ListParams::default()).await.unwrap().items;
            match pods.len() == size && pods.iter().all(is_ready) {
                true => Ok(()),
                false => Err(format!("expected {size} ready Pods, found {pods:?}")),
            }
        })
        .await;
    }

    /// Returns the names of all objects that the Memcached owns, directly or indirectly.
    async fn dependents(&self) -> Vec<String> {
        let all = ListParams::default();
        let deployments = self.deployments.list(&all).await.unwrap();
        let replica_sets = self.replica_sets.list(&all).await.unwrap();
        let pods = self.pods.list(&all).await.unwrap();
        let names = deployments.iter().map(ResourceExt::name_any);
        let names = names.chain(replica_sets.iter().map(ResourceExt::name_any));
        names
            .chain(pods.iter().map(ResourceExt::name_any))
            .collect()
    }
}

fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.clone().unwrap_or_default();
    let mut conditions = status.conditions.iter().flatten();
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
    node.is_some()
        && conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

#[rbuilder::envtest::test(controllers)]
async fn memcached_has_ready_pods_until_it_is_deleted() {
    let env = Environment::builder()
        .controllers()
        .nodes(3)
        .crds("config/crd/bases")
        .start()
        .await
        .unwrap();
    let namespace = env.namespace("cluster").await.unwrap();
    let args = ManagerArgs {
        watch_namespace: namespace.clone(),
        ..ManagerArgs::for_tests()
    };
    let manager = Manager::with_client("cluster", env.client(), args);
    let operator = testing::run(controller::register(manager));
    let cluster = Cluster {
        memcacheds: Api::namespaced(env.client(), &namespace),
        deployments: Api::namespaced(env.client(), &namespace),
        replica_sets: Api::namespaced(env.client(), &namespace),
        pods: Api::namespaced(env.client(), &namespace),
    };

    let memcached = Memcached::new(NAME, MemcachedSpec { size: 2 });
    let memcacheds = &cluster.memcacheds;
    let created = memcacheds.create(&PostParams::default(), &memcached).await;
    created.unwrap();
    cluster.await_size(2).await;
    for size in [3, 1] {
        let patch = Patch::Merge(json!({"spec": {"size": size}}));
        let patched = memcacheds
            .patch(NAME, &PatchParams::default(), &patch)
            .await;
        patched.unwrap();
        cluster.await_size(size).await;
    }
    assert_eq!(cluster.dependents().await.len(), 3);

    let deleted = memcacheds.delete(NAME, &DeleteParams::background()).await;
    deleted.unwrap();
    eventually(COLLECTION, || async {
        match cluster.dependents().await {
            left if left.is_empty() => Ok(()),
            left => Err(format!("{left:?} are left")),
        }
    })
    .await;
    operator.stop().await;
    env.stop().await.unwrap();
}
