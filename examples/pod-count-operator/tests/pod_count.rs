// SPDX-License-Identifier: Apache-2.0

//! The label `pod-count`, on a real API server.
//!
//! | behaviour | test |
//! |---|---|
//! | A ReplicaSet gets the number of Pods in its namespace that have its template's labels | `replica_set_counts_pods_with_its_labels` |
//! | Created and deleted Pods are counted | `count_follows_created_and_deleted_pods` |
//! | Pods that get other labels or another owner are counted there | `count_follows_relabelled_pods` |
//! | A ReplicaSet whose template changes is counted again | `count_follows_the_template` |
//! | The label is restored whoever changes it, and other labels are kept | `changed_label_is_restored` |
//! | A correct label costs no request | `correct_label_costs_no_request`, a unit test of the controller |
//! | A deleted ReplicaSet is not created again | `deleted_replica_set_is_not_created_again` |
//! | Faults do not change the labels in the end | `pods_of_a_deployment_are_counted_under_faults`, in a simulation |

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use pod_count_operator::controller;
use pod_count_operator::controller::replica_set::{
    BY_LABEL, POD_COUNT, PodMeta, State, places_of_pod, reconcile,
};
use rbuilder::envtest::{Environment, eventually};
use rbuilder::simulation::Simulation;
use rbuilder::testing::{self, Running};
use rbuilder::{Ctx, Manager, ManagerArgs};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// A namespace with a running operator.
struct Fixture {
    env: Environment,
    namespace: String,
    operator: Running,
}

impl Fixture {
    async fn new(env: Environment) -> Self {
        let namespace = env.namespace("pod-count").await.unwrap();
        let args = ManagerArgs {
            watch_namespace: namespace.clone(),
            ..ManagerArgs::for_tests()
        };
        let manager = Manager::with_client("pod-count", env.client(), args);
        let operator = testing::run(controller::register(manager));
        Fixture {
            env,
            namespace,
            operator,
        }
    }

    fn replica_sets(&self) -> Api<ReplicaSet> {
        Api::namespaced(self.env.client(), &self.namespace)
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.env.client(), &self.namespace)
    }

    async fn replica_set(&self, name: &str) -> ReplicaSet {
        let replica_set = replica_set(name);
        self.replica_sets()
            .create(&PostParams::default(), &replica_set)
            .await
            .unwrap()
    }

    /// Creates a Pod like the ReplicaSet controller, with labels and an owner.
    async fn pod(&self, name: &str, owner: &ReplicaSet) -> Pod {
        let mut pod = pod(name, &owner.name_any());
        pod.metadata.owner_references = owner.controller_owner_ref(&()).map(|owner| vec![owner]);
        self.pods()
            .create(&PostParams::default(), &pod)
            .await
            .unwrap()
    }

    async fn delete_pod(&self, name: &str) {
        let now = DeleteParams::default().grace_period(0);
        self.pods().delete(name, &now).await.unwrap();
    }

    async fn patch_pod(&self, name: &str, metadata: Value) {
        patch(&self.pods(), name, json!({"metadata": metadata})).await;
    }

    async fn await_count(&self, name: &str, wanted: usize) -> ReplicaSet {
        let wanted = Some(wanted.to_string());
        eventually(LONG, || async {
            let found = self.replica_sets().get(name).await.unwrap();
            match found.labels().get(POD_COUNT).cloned() {
                count if count == wanted => Ok(found),
                count => Err(format!("{name} says {count:?}, not {wanted:?}")),
            }
        })
        .await
    }
}

/// Rollouts replace the ReplicaSet, whose number of Pods changes step by step.
#[test]
fn pods_of_a_deployment_are_counted_under_faults() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "web:1"}]},
            },
        },
    });
    Simulation::new(controller::register)
        .install("config")
        .declare(&deployment)
        .check();
}

fn from_json<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the object is well-formed")
}

/// Returns a ReplicaSet whose Pods are labelled with its name.
fn replica_set(name: &str) -> ReplicaSet {
    from_json(json!({
        "metadata": {"name": name, "labels": {"made": "by-hand"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }))
}

fn pod(name: &str, app: &str) -> Pod {
    from_json(json!({
        "metadata": {"name": name, "labels": {"app": app, "made": "by-hand"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }))
}

async fn patch<K>(api: &Api<K>, name: &str, patch: Value)
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let patch = Patch::Merge(patch);
    api.patch(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

#[rbuilder::envtest::test]
async fn replica_set_counts_pods_with_its_labels(env: Environment) {
    let fixture = Fixture::new(env).await;
    let web = fixture.replica_set("web").await;
    let db = fixture.replica_set("db").await;
    fixture.replica_set("none").await;
    for name in ["web-1", "web-2", "web-3"] {
        fixture.pod(name, &web).await;
    }
    fixture.pod("db-1", &db).await;

    let elsewhere = fixture.env.namespace("elsewhere").await.unwrap();
    let elsewhere: Api<Pod> = Api::namespaced(fixture.env.client(), &elsewhere);
    let other = elsewhere
        .create(&PostParams::default(), &pod("web-4", "web"))
        .await;
    other.unwrap();

    fixture.await_count("web", 3).await;
    fixture.await_count("db", 1).await;
    fixture.await_count("none", 0).await;
    fixture.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn count_follows_created_and_deleted_pods(env: Environment) {
    let fixture = Fixture::new(env).await;
    let web = fixture.replica_set("web").await;
    fixture.await_count("web", 0).await;
    fixture.pod("one", &web).await;
    fixture.await_count("web", 1).await;
    fixture.pod("two", &web).await;
    fixture.await_count("web", 2).await;
    fixture.delete_pod("one").await;
    fixture.await_count("web", 1).await;
    fixture.delete_pod("two").await;
    fixture.await_count("web", 0).await;
    fixture.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn count_follows_relabelled_pods(env: Environment) {
    let fixture = Fixture::new(env).await;
    let web = fixture.replica_set("web").await;
    let db = fixture.replica_set("db").await;
    fixture.pod("moving", &web).await;
    fixture.await_count("web", 1).await;
    fixture.await_count("db", 0).await;

    // The ReplicaSet controller releases Pods that no longer match like this.
    let gone = json!({"labels": {"app": "quarantine"}, "ownerReferences": null});
    fixture.patch_pod("moving", gone).await;
    fixture.await_count("web", 0).await;

    let owner = db.controller_owner_ref(&()).unwrap();
    let adopted = json!({"labels": {"app": "db"}, "ownerReferences": [owner]});
    fixture.patch_pod("moving", adopted).await;
    fixture.await_count("db", 1).await;

    // Move the Pod in one step. Labels count even if nobody owns the Pod.
    let owner = web.controller_owner_ref(&()).unwrap();
    let moved = json!({"labels": {"app": "web"}, "ownerReferences": [owner]});
    fixture.patch_pod("moving", moved).await;
    fixture.await_count("web", 1).await;
    fixture.await_count("db", 0).await;
    let orphan = json!({"ownerReferences": null, "labels": {"app": "db"}});
    fixture.patch_pod("moving", orphan).await;
    fixture.await_count("web", 0).await;
    fixture.await_count("db", 1).await;
    fixture.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn count_follows_the_template(env: Environment) {
    let fixture = Fixture::new(env).await;
    let web = fixture.replica_set("web").await;
    fixture.pod("plain", &web).await;
    fixture.pod("canary", &web).await;
    let track = json!({"labels": {"track": "canary"}});
    fixture.patch_pod("canary", track.clone()).await;
    fixture.await_count("web", 2).await;

    let template = json!({"spec": {"template": {"metadata": track}}});
    patch(&fixture.replica_sets(), "web", template).await;
    fixture.await_count("web", 1).await;
    fixture.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn changed_label_is_restored(env: Environment) {
    let fixture = Fixture::new(env).await;
    let web = fixture.replica_set("web").await;
    fixture.pod("one", &web).await;
    fixture.await_count("web", 1).await;

    let labels = json!({"metadata": {"labels": {POD_COUNT: "many", "kept": "yes"}}});
    patch(&fixture.replica_sets(), "web", labels).await;
    fixture.await_count("web", 1).await;
    let labels = json!({"metadata": {"labels": {POD_COUNT: null}}});
    patch(&fixture.replica_sets(), "web", labels).await;
    let found = fixture.await_count("web", 1).await;
    let expected = [("kept", "yes"), ("made", "by-hand"), (POD_COUNT, "1")];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(*found.labels(), BTreeMap::from(expected));
    assert_eq!(found.spec, web.spec, "the label is all that is written");
    fixture.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn deleted_replica_set_is_not_created_again(env: Environment) {
    let fixture = Fixture::new(env).await;
    let web = fixture.replica_set("web").await;
    fixture.pod("one", &web).await;
    fixture.await_count("web", 1).await;
    fixture
        .replica_sets()
        .delete("web", &DeleteParams::background())
        .await
        .unwrap();
    fixture.delete_pod("one").await;

    let db = fixture.replica_set("db").await;
    fixture.pod("two", &db).await;
    fixture.await_count("db", 1).await;
    let found = fixture.replica_sets().get_opt("web").await.unwrap();
    assert_eq!(found, None);

    // With a lagging cache, the write finds out.
    let ctx = Ctx::new(fixture.env.client(), "replicaset", State::default())
        .indexing(BY_LABEL, places_of_pod)
        .caching::<PodMeta>([]);
    reconcile(Arc::new(web), ctx).await.unwrap();
    let found = fixture.replica_sets().get_opt("web").await.unwrap();
    assert_eq!(found, None);
    fixture.operator.stop().await;
}
