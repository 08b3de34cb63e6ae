// SPDX-License-Identifier: Apache-2.0

//! What docs/tutorial.md promises, each promise with a test on a real API server.
//!
//! | promise | test |
//! |---|---|
//! | A size outside of 1 to 3 is rejected | `size_outside_of_its_bounds_is_rejected` |
//! | The Deployment is owned and has the size | `deployment_belongs_to_its_memcached` |
//! | The Deployment follows the size | `deployment_follows_the_size` |
//! | Any drift is reverted | `drift_is_reverted` |
//! | A deleted Deployment is created again | `deleted_deployment_is_created_again` |
//! | Available is True exactly while all replicas are ready | `available_means_that_all_replicas_are_ready` |
//! | Tools that do not know the kind can judge it by its status | `tools_can_judge_the_object_by_its_status` |
//! | A foreign Deployment is left alone | `foreign_deployment_is_left_alone` |
//! | A deleted Memcached is not reconciled | `deleted_memcached_is_not_reconciled` |

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Error, Resource, ResourceExt};
use memcached_operator::api::v1alpha1::{Memcached, MemcachedSpec};
use memcached_operator::controller;
use rbuilder::envtest::{Environment, eventually};
use rbuilder::testing::{self, Kstatus, Running, eventually_eq, kstatus};
use rbuilder::{Manager, ManagerArgs, conditions};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// A namespace with a running operator.
struct Fixture {
    memcacheds: Api<Memcached>,
    deployments: Api<Deployment>,
    operator: Running,
}

impl Fixture {
    async fn start(env: Environment) -> Self {
        env.install_crds("config/crd/bases").await.unwrap();
        let namespace = env.namespace("tutorial").await.unwrap();
        let args = ManagerArgs {
            watch_namespace: namespace.clone(),
            ..ManagerArgs::for_tests()
        };
        let manager = Manager::with_client("tutorial", env.client(), args);
        Self {
            memcacheds: Api::namespaced(env.client(), &namespace),
            deployments: Api::namespaced(env.client(), &namespace),
            operator: testing::run(controller::register(manager)),
        }
    }

    async fn create(&self, name: &str, size: i32) -> Result<Memcached, Error> {
        let memcached = Memcached::new(name, MemcachedSpec { size });
        self.memcacheds
            .create(&PostParams::default(), &memcached)
            .await
    }

    /// Waits until the Deployment has these values at these JSON pointers. Returns it.
    async fn await_deployment(&self, name: &str, expected: &[(&str, Value)]) -> Deployment {
        eventually(LONG, || async {
            let found = self
                .deployments
                .get(name)
                .await
                .map_err(|error| error.to_string())?;
            let value = json!(found);
            for (pointer, expected) in expected {
                let found = value.pointer(pointer);
                if found != Some(expected) {
                    return Err(format!("expected {expected} at {pointer}, found {found:?}"));
                }
            }
            Ok(found)
        })
        .await
    }

    /// Writes the status like the Deployment controller, which does not run here.
    async fn report_ready(&self, name: &str, ready: i32) {
        let deployment = self.deployments.get(name).await.unwrap();
        let status = json!({"status": {
            "observedGeneration": deployment.metadata.generation,
            "replicas": ready,
            "readyReplicas": ready,
        }});
        let patch = Patch::Merge(status);
        let params = PatchParams::default();
        self.deployments
            .patch_status(name, &params, &patch)
            .await
            .unwrap();
    }

    /// Waits until the condition Available has this status and message.
    async fn await_available(&self, name: &str, status: &str, message: &str) {
        eventually(LONG, || async {
            let memcached = self.memcacheds.get(name).await.unwrap();
            let conditions = memcached.status.unwrap_or_default().conditions;
            match conditions::find(&conditions, "Available") {
                Some(found) if (&*found.status, &*found.message) == (status, message) => Ok(()),
                found => Err(format!("expected {status} ({message}), found {found:?}")),
            }
        })
        .await;
    }
}

async fn patch<K>(api: &Api<K>, name: &str, patch: Value)
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let patch = Patch::Merge(patch);
    api.patch(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

#[rbuilder::envtest::test]
async fn size_outside_of_its_bounds_is_rejected(env: Environment) {
    let fixture = Fixture::start(env).await;
    for (size, is_accepted) in [(0, false), (1, true), (3, true), (4, false)] {
        match fixture.create(&format!("size-{size}"), size).await {
            Ok(_) => assert!(is_accepted, "{size}"),
            Err(Error::Api(status)) => {
                assert!(!is_accepted, "{size}");
                assert!(status.message.contains("spec.size"), "{status:?}");
            }
            Err(error) => panic!("{error}"),
        }
    }
    fixture.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn deployment_belongs_to_its_memcached(env: Environment) {
    let fixture = Fixture::start(env).await;
    let memcached = fixture.create("mine", 3).await.unwrap();
    let replicas = ("/spec/replicas", json!(3));
    let deployment = fixture.await_deployment("mine", &[replicas]).await;
    let owners = deployment.owner_references();
    assert_eq!(owners.len(), 1);
    assert_eq!(owners[0].controller, Some(true));
    assert_eq!(Some(&owners[0].uid), memcached.metadata.uid.as_ref());
    fixture.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn deployment_follows_the_size(env: Environment) {
    let fixture = Fixture::start(env).await;
    fixture.create("sized", 3).await.unwrap();
    fixture
        .await_deployment("sized", &[("/spec/replicas", json!(3))])
        .await;
    patch(&fixture.memcacheds, "sized", json!({"spec": {"size": 2}})).await;
    fixture
        .await_deployment("sized", &[("/spec/replicas", json!(2))])
        .await;
    fixture.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn drift_is_reverted(env: Environment) {
    let fixture = Fixture::start(env).await;
    fixture.create("kept", 1).await.unwrap();
    let image = "/spec/template/spec/containers/0/image";
    let args = "/spec/template/spec/containers/0/args";
    let label = "/spec/template/metadata/labels/app.kubernetes.io~1name";
    let user = "/spec/template/spec/securityContext/runAsUser";
    let desired = [
        ("/spec/replicas", json!(1)),
        (image, json!("memcached:1.6.26-alpine3.19")),
        (args, json!(["--memory-limit=64"])),
        (label, json!("memcached")),
        (user, json!(11211)),
    ];
    fixture.await_deployment("kept", &desired).await;
    fixture
        .await_available("kept", "False", "0 of 1 replicas are ready")
        .await;

    let container = json!({"name": "memcached", "image": "memcached:latest", "args": ["-vv"]});
    for drift in [
        json!({"spec": {"replicas": 7}}),
        json!({"spec": {"template": {"spec": {"containers": [container]}}}}),
        json!({"spec": {"template": {"spec": {"securityContext": {"runAsUser": 0}}}}}),
    ] {
        patch(&fixture.deployments, "kept", drift).await;
        fixture.await_deployment("kept", &desired).await;
    }
    fixture.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn deleted_deployment_is_created_again(env: Environment) {
    let fixture = Fixture::start(env).await;
    fixture.create("back", 1).await.unwrap();
    let first = fixture.await_deployment("back", &[]).await;
    fixture
        .await_available("back", "False", "0 of 1 replicas are ready")
        .await;
    let params = DeleteParams::background();
    fixture.deployments.delete("back", &params).await.unwrap();
    eventually(LONG, || async {
        let found = fixture.deployments.get_opt("back").await.unwrap();
        found.is_some_and(|found| found.uid() != first.uid())
    })
    .await;
    fixture.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn available_means_that_all_replicas_are_ready(env: Environment) {
    let fixture = Fixture::start(env).await;
    fixture.create("ready", 2).await.unwrap();
    fixture
        .await_available("ready", "False", "0 of 2 replicas are ready")
        .await;
    fixture.report_ready("ready", 1).await;
    fixture
        .await_available("ready", "False", "1 of 2 replicas are ready")
        .await;
    fixture.report_ready("ready", 2).await;
    fixture
        .await_available("ready", "True", "2 of 2 replicas are ready")
        .await;

    // Until the Deployment controller has observed the new size, its status is about the old one.
    patch(&fixture.memcacheds, "ready", json!({"spec": {"size": 3}})).await;
    fixture
        .await_available("ready", "False", "0 of 3 replicas are ready")
        .await;
    fixture.report_ready("ready", 3).await;
    fixture
        .await_available("ready", "True", "3 of 3 replicas are ready")
        .await;
    fixture.report_ready("ready", 2).await;
    fixture
        .await_available("ready", "False", "2 of 3 replicas are ready")
        .await;
    fixture.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn tools_can_judge_the_object_by_its_status(env: Environment) {
    let client = env.client();
    let fixture = Fixture::start(env).await;
    let judge = async || kstatus(&fixture.memcacheds.get("judged").await.unwrap());

    // The operator does not watch this namespace.
    let unwatched: Api<Memcached> = Api::namespaced(client, "default");
    let memcached = Memcached::new("judged", MemcachedSpec { size: 1 });
    let params = PostParams::default();
    unwatched.create(&params, &memcached).await.unwrap();
    let created = unwatched.get("judged").await.unwrap();
    assert_eq!(kstatus(&created), Kstatus::InProgress);

    fixture.create("judged", 1).await.unwrap();
    fixture
        .await_available("judged", "False", "0 of 1 replicas are ready")
        .await;
    assert_eq!(judge().await, Kstatus::InProgress);
    fixture.report_ready("judged", 1).await;
    eventually_eq(LONG, Kstatus::Current, judge).await;

    patch(&fixture.memcacheds, "judged", json!({"spec": {"size": 2}})).await;
    assert_eq!(judge().await, Kstatus::InProgress);
    fixture.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn foreign_deployment_is_left_alone(env: Environment) {
    let fixture = Fixture::start(env).await;
    fixture.create("owner", 1).await.unwrap();
    let mut foreign = fixture
        .await_deployment("owner", &[("/spec/replicas", json!(1))])
        .await;
    foreign.metadata = serde_json::from_value(json!({
        "name": "taken",
        "ownerReferences": foreign.metadata.owner_references,
    }))
    .unwrap();
    let params = PostParams::default();
    let created = fixture.deployments.create(&params, &foreign).await.unwrap();

    fixture.create("taken", 3).await.unwrap();
    fixture.create("later", 1).await.unwrap();
    fixture.await_deployment("later", &[]).await;
    let found = fixture.deployments.get("taken").await.unwrap();
    assert_eq!(found.resource_version(), created.resource_version());
    fixture.operator.stop().await;
}

#[rbuilder::envtest::test]
async fn deleted_memcached_is_not_reconciled(env: Environment) {
    let fixture = Fixture::start(env).await;
    fixture.create("gone", 1).await.unwrap();
    fixture
        .await_available("gone", "False", "0 of 1 replicas are ready")
        .await;
    let params = DeleteParams::background();
    fixture.memcacheds.delete("gone", &params).await.unwrap();
    // No garbage collector runs here, so the test deletes the Deployment. It must not be created
    // again.
    fixture.deployments.delete("gone", &params).await.unwrap();

    fixture.create("later", 1).await.unwrap();
    fixture.await_deployment("later", &[]).await;
    assert_eq!(fixture.deployments.get_opt("gone").await.unwrap(), None);
    fixture.operator.stop().await;
}
