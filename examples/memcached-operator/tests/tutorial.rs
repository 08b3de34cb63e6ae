// SPDX-License-Identifier: Apache-2.0

//! What the tutorial promises, each promise a test against a real API server.
//!
//! | fact | test |
//! |---|---|
//! | The kind is served; a size outside of 1 to 3 is refused | `the_schema_refuses_a_size_outside_its_bounds` |
//! | … with a status of its own | `the_status_is_a_subresource` |
//! | At first nothing is known; a refused Deployment is an error, tried again later each time | `a_new_object_first_says_that_nothing_is_known` |
//! | The Deployment, its pod, its labels and its owner | `the_deployment_is_what_the_tutorial_says` |
//! | The object becomes available, in one condition | `the_object_becomes_available` |
//! | The Deployment follows the size; drift is reverted | `the_deployment_follows_the_size_and_drift_is_undone` |
//! | A deleted Deployment comes back | `a_deleted_deployment_comes_back` |
//! | A deleted object is not reconciled | `a_deleted_object_is_left_in_peace` |
//! | What cannot be built is told | `a_deployment_that_cannot_be_built_is_said_in_the_status` |
//! | A refused resize is told | `a_refused_resize_is_said_in_the_status` |
//! | A creation is looked at again in a minute | `a_creation_asks_to_be_looked_at_again_in_a_minute` |
//! | A resize is looked at again soon | `a_resize_asks_to_be_looked_at_again_soon` |
//! | A panic is one object's | `a_panic_does_not_stop_the_controller` |

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Error as KubeError, ResourceExt};
use memcached_operator::api::v1alpha1::{Memcached, MemcachedSpec};
use memcached_operator::controller;
use memcached_operator::controller::memcached::{State, reconcile};
use rbuilder::conditions::{self, Condition};
use rbuilder::envtest::{Environment, eventually};
use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, testing};
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(20);

/// A namespace of its own for one test, on the control plane that all tests share.
struct Fixture {
    client: Client,
    namespace: String,
}

impl Fixture {
    async fn new(env: &Environment, prefix: &str) -> Self {
        env.install_crds("config/crd/bases")
            .await
            .expect("the CRDs install");
        let namespace = env.namespace(prefix).await.expect("a namespace is made");
        Fixture {
            client: env.client(),
            namespace,
        }
    }

    fn memcacheds(&self) -> Api<Memcached> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn create(&self, name: &str, size: Option<i32>) -> Result<Memcached, KubeError> {
        self.memcacheds()
            .create(
                &PostParams::default(),
                &Memcached::new(name, MemcachedSpec { size }),
            )
            .await
    }

    /// A manager that looks at this namespace only.
    fn manager(&self) -> Manager {
        let mut args = ManagerArgs::for_tests();
        args.watch_namespace.clone_from(&self.namespace);
        Manager::with_client("tests", self.client.clone(), args)
    }

    /// Runs the whole operator while `body` runs; then stops it and wants a clean end.
    async fn with_operator(&self, body: impl Future<Output = ()>) {
        let operator = testing::run(controller::register(self.manager()));
        body.await;
        operator.stop().await;
    }

    /// One reconcile, called directly: what a unit test of a reconciler looks like.
    async fn reconcile_once(&self, name: &str) -> rbuilder::Result {
        let memcached = self
            .memcacheds()
            .get(name)
            .await
            .expect("the object is there");
        reconcile(
            Arc::new(memcached),
            Ctx::new(self.client.clone(), "memcached", State::default()),
        )
        .await
    }

    async fn available(&self, name: &str) -> Option<Condition> {
        let memcached = self
            .memcacheds()
            .get_opt(name)
            .await
            .expect("the API answers")?;
        let conditions = memcached.status?.conditions;
        conditions::find(&conditions, "Available").cloned()
    }

    /// Waits until the condition `Available` has this status and reason, and returns it.
    async fn await_available(&self, name: &str, status: &str, reason: &str) -> Condition {
        eventually(LONG, || async {
            let found = self.available(name).await;
            match found {
                Some(condition) if condition.status == status && condition.reason == reason => {
                    Ok(condition)
                }
                other => Err(format!("want Available={status} {reason}, found {other:?}")),
            }
        })
        .await
    }

    /// Waits until the object is available with this size, and the reconciles that its own status caused are over: what
    /// happens from here on must have been noticed through a watch.
    async fn await_rest(&self, name: &str, size: i32) {
        let wanted = format!("with {size} replicas");
        eventually(LONG, || async {
            let condition = self.await_available(name, "True", "Reconciling").await;
            condition.message.contains(&wanted)
        })
        .await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    async fn await_replicas(&self, name: &str, wanted: i32) -> Deployment {
        eventually(LONG, || async {
            let deployment = self
                .deployments()
                .get(name)
                .await
                .map_err(|error| error.to_string())?;
            match deployment.spec.as_ref().and_then(|spec| spec.replicas) {
                Some(found) if found == wanted => Ok(deployment),
                found => Err(format!("want {wanted} replicas, found {found:?}")),
            }
        })
        .await
    }

    /// Has the API server refuse an operation on Deployments of this namespace.
    async fn refuse_deployments(&self, operation: &str) {
        let name = format!("{}-{}", self.namespace, operation.to_lowercase());
        let policy: ValidatingAdmissionPolicy = from_json(json!({
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "resourceRules": [{
                        "apiGroups": ["apps"], "apiVersions": ["v1"],
                        "operations": [operation], "resources": ["deployments"],
                    }],
                },
                "validations": [{"expression": "false", "message": "no Deployments today"}],
            },
        }));
        let binding: ValidatingAdmissionPolicyBinding = from_json(json!({
            "metadata": {"name": name},
            "spec": {
                "policyName": name,
                "validationActions": ["Deny"],
                "matchResources": {
                    "namespaceSelector": {
                        "matchLabels": {"kubernetes.io/metadata.name": self.namespace},
                    },
                },
            },
        }));
        let client = self.client.clone();
        Api::all(client.clone())
            .create(&PostParams::default(), &policy)
            .await
            .expect("the policy is made");
        Api::all(client)
            .create(&PostParams::default(), &binding)
            .await
            .expect("the binding is made");
    }

    async fn allow_deployments(&self, operation: &str) {
        let name = format!("{}-{}", self.namespace, operation.to_lowercase());
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(self.client.clone());
        bindings
            .delete(&name, &DeleteParams::default())
            .await
            .expect("the binding goes");
    }

    /// Waits until the refusal is in force: the server compiles policies in the background.
    async fn await_refusal(&self, probe: impl AsyncFn() -> Result<(), KubeError>) {
        eventually(LONG, || async {
            match probe().await {
                Err(KubeError::Api(status)) if status.message.contains("no Deployments today") => {
                    Ok(())
                }
                other => Err(format!("not refused yet: {other:?}")),
            }
        })
        .await;
    }
}

fn from_json<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the object is well-formed")
}

fn deployment(name: &str) -> Deployment {
    from_json(json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }))
}

fn merge(patch: Value) -> (PatchParams, Patch<Value>) {
    (PatchParams::default(), Patch::Merge(patch))
}

#[rbuilder::envtest::test]
async fn the_schema_refuses_a_size_outside_its_bounds(env: Environment) {
    let fixture = Fixture::new(&env, "bounds").await;
    for (size, verdict) in [
        (0, Some(422)),
        (1, None),
        (3, None),
        (4, Some(422)),
        (9, Some(422)),
    ] {
        let refused = match fixture.create(&format!("size-{size}"), Some(size)).await {
            Ok(_) => None,
            Err(KubeError::Api(status)) => {
                assert!(status.message.contains("spec.size"), "{}", status.message);
                Some(status.code)
            }
            Err(other) => panic!("the API answers: {other}"),
        };
        assert_eq!(refused, verdict, "size {size}");
    }
}

#[rbuilder::envtest::test]
async fn the_status_is_a_subresource(env: Environment) {
    let fixture = Fixture::new(&env, "status").await;
    let created = fixture
        .create("sub", Some(1))
        .await
        .expect("it is accepted");
    let (params, patch) = merge(json!({"status": {"conditions": [{
        "type": "Available", "status": "True", "reason": "Tested", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}}));
    let plain = fixture
        .memcacheds()
        .patch("sub", &params, &patch)
        .await
        .expect("the patch is accepted");
    assert_eq!(
        plain.status, None,
        "a write to the object does not reach the status"
    );
    let patched = fixture
        .memcacheds()
        .patch_status("sub", &params, &patch)
        .await
        .expect("it is accepted");
    assert!(patched.status.is_some());
    assert_eq!(patched.metadata.generation, created.metadata.generation);
}

#[rbuilder::envtest::test]
async fn a_new_object_first_says_that_nothing_is_known(env: Environment) {
    let fixture = Fixture::new(&env, "unknown").await;
    fixture.refuse_deployments("CREATE").await;
    fixture
        .await_refusal(async || {
            fixture
                .deployments()
                .create(&PostParams::default(), &deployment("probe"))
                .await
                .map(|_| ())
        })
        .await;
    fixture
        .create("new", Some(3))
        .await
        .expect("it is accepted");

    let error = fixture
        .reconcile_once("new")
        .await
        .expect_err("the API refuses the Deployment");
    assert!(
        error.to_string().contains("no Deployments today"),
        "{error}"
    );
    assert!(!error.is_terminal(), "it is tried again, later each time");
    let condition = fixture
        .available("new")
        .await
        .expect("there is a condition");
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str()),
        ("Unknown", "Reconciling")
    );
    assert_eq!(condition.message, "Starting reconciliation");

    fixture
        .with_operator(async {
            fixture
                .await_available("new", "Unknown", "Reconciling")
                .await;
            fixture.allow_deployments("CREATE").await;
            fixture.await_available("new", "True", "Reconciling").await;
        })
        .await;
}

#[rbuilder::envtest::test]
async fn the_deployment_is_what_the_tutorial_says(env: Environment) {
    let fixture = Fixture::new(&env, "deployment").await;
    let memcached = fixture
        .create("three", Some(3))
        .await
        .expect("it is accepted");
    fixture.create("none", None).await.expect("it is accepted");
    fixture
        .with_operator(async {
            let deployment = fixture.await_replicas("three", 3).await;
            fixture.await_replicas("none", 0).await;

            let owners = deployment.owner_references();
            assert_eq!(owners.len(), 1);
            assert_eq!(
                (owners[0].controller, owners[0].block_owner_deletion),
                (Some(true), Some(true))
            );
            assert_eq!(Some(&owners[0].uid), memcached.metadata.uid.as_ref());

            let spec = deployment.spec.expect("a spec");
            let template = spec.template;
            let labels = template
                .metadata
                .and_then(|metadata| metadata.labels)
                .unwrap_or_default();
            assert_eq!(labels["app.kubernetes.io/name"], "project");
            let pod = serde_json::to_value(template.spec).expect("it is JSON");
            assert_eq!(pod["containers"].as_array().map(Vec::len), Some(1));
            for (path, expected) in [
                ("/containers/0/name", json!("memcached")),
                ("/containers/0/image", json!("memcached:1.6.26-alpine3.19")),
                (
                    "/containers/0/command",
                    json!(["memcached", "--memory-limit=64", "-o", "modern", "-v"]),
                ),
                ("/containers/0/ports/0/containerPort", json!(11211)),
                ("/containers/0/ports/0/name", json!("memcached")),
                ("/containers/0/securityContext/runAsNonRoot", json!(true)),
                ("/containers/0/securityContext/runAsUser", json!(1001)),
                (
                    "/containers/0/securityContext/allowPrivilegeEscalation",
                    json!(false),
                ),
                (
                    "/containers/0/securityContext/capabilities/drop",
                    json!(["ALL"]),
                ),
                ("/securityContext/runAsNonRoot", json!(true)),
                (
                    "/securityContext/seccompProfile/type",
                    json!("RuntimeDefault"),
                ),
            ] {
                assert_eq!(pod.pointer(path), Some(&expected), "{path}");
            }
        })
        .await;
}

#[rbuilder::envtest::test]
async fn the_object_becomes_available(env: Environment) {
    let fixture = Fixture::new(&env, "available").await;
    let created = fixture
        .create("ready", Some(3))
        .await
        .expect("it is accepted");
    fixture
        .with_operator(async {
            let condition = fixture
                .await_available("ready", "True", "Reconciling")
                .await;
            assert_eq!(
                condition.message,
                "Deployment for custom resource (ready) with 3 replicas created successfully"
            );
            assert_eq!(condition.observed_generation, created.metadata.generation);
            let status = fixture
                .memcacheds()
                .get("ready")
                .await
                .expect("it is there")
                .status;
            let conditions = status.expect("a status").conditions;
            assert_eq!(conditions.len(), 1, "exactly one condition: {conditions:?}");
        })
        .await;
}

#[rbuilder::envtest::test]
async fn the_deployment_follows_the_size_and_drift_is_undone(env: Environment) {
    let fixture = Fixture::new(&env, "drift").await;
    fixture
        .create("sized", Some(3))
        .await
        .expect("it is accepted");
    fixture
        .with_operator(async {
            fixture.await_replicas("sized", 3).await;

            let (params, patch) = merge(json!({"spec": {"size": 2}}));
            fixture
                .memcacheds()
                .patch("sized", &params, &patch)
                .await
                .expect("the size changes");
            fixture.await_replicas("sized", 2).await;
            fixture.await_rest("sized", 2).await;

            let (params, patch) = merge(json!({"spec": {"replicas": 7}}));
            fixture
                .deployments()
                .patch("sized", &params, &patch)
                .await
                .expect("the Deployment changes");
            fixture.await_replicas("sized", 2).await;
        })
        .await;
}

#[rbuilder::envtest::test]
async fn a_deleted_deployment_comes_back(env: Environment) {
    let fixture = Fixture::new(&env, "back").await;
    fixture
        .create("kept", Some(1))
        .await
        .expect("it is accepted");
    fixture
        .with_operator(async {
            let first = fixture.await_replicas("kept", 1).await;
            fixture.await_rest("kept", 1).await;
            fixture
                .deployments()
                .delete("kept", &DeleteParams::background())
                .await
                .expect("it goes");
            eventually(LONG, || async {
                match fixture.deployments().get_opt("kept").await {
                    Ok(Some(found)) if found.uid() != first.uid() => Ok(()),
                    other => Err(format!(
                        "not back yet: {:?}",
                        other.map(|found| found.map(|d| d.uid()))
                    )),
                }
            })
            .await;
        })
        .await;
}

#[rbuilder::envtest::test]
async fn a_deleted_object_is_left_in_peace(env: Environment) {
    let fixture = Fixture::new(&env, "gone").await;
    fixture
        .create("gone", Some(1))
        .await
        .expect("it is accepted");
    fixture
        .create("stays", Some(1))
        .await
        .expect("it is accepted");
    fixture
        .with_operator(async {
            fixture.await_available("gone", "True", "Reconciling").await;
            fixture
                .memcacheds()
                .delete("gone", &DeleteParams::default())
                .await
                .expect("it goes");
            // Nothing collects garbage here, so the Deployment stays; deleting it must not bring it back.
            fixture
                .deployments()
                .delete("gone", &DeleteParams::background())
                .await
                .expect("it goes");

            // A reconcile of another object, begun later, proves that the queue has moved on.
            let (params, patch) = merge(json!({"spec": {"size": 2}}));
            fixture
                .memcacheds()
                .patch("stays", &params, &patch)
                .await
                .expect("the size changes");
            fixture.await_replicas("stays", 2).await;
            assert_eq!(
                fixture
                    .deployments()
                    .get_opt("gone")
                    .await
                    .expect("the API answers"),
                None
            );
        })
        .await;
}

#[rbuilder::envtest::test]
async fn a_deployment_that_cannot_be_built_is_said_in_the_status(env: Environment) {
    let fixture = Fixture::new(&env, "unbuilt").await;
    let name = "a".repeat(64);
    fixture
        .create(&name, Some(1))
        .await
        .expect("it is accepted");
    fixture
        .with_operator(async {
            let condition = fixture.await_available(&name, "False", "Reconciling").await;
            let start = format!("Failed to create Deployment for the custom resource ({name}): (");
            assert!(
                condition.message.starts_with(&start),
                "{}",
                condition.message
            );
            assert!(
                condition.message.contains("at most 63 characters"),
                "{}",
                condition.message
            );
        })
        .await;
}

/// The reconciler, but its first call panics.
async fn shaky(memcached: Arc<Memcached>, ctx: Ctx<State>) -> rbuilder::Result {
    static PANICKED: AtomicBool = AtomicBool::new(false);
    assert!(
        PANICKED.swap(true, Ordering::SeqCst),
        "the first call panics"
    );
    reconcile(memcached, ctx).await
}

#[rbuilder::envtest::test]
async fn a_panic_does_not_stop_the_controller(env: Environment) {
    let fixture = Fixture::new(&env, "panic").await;
    fixture
        .create("shaken", Some(1))
        .await
        .expect("it is accepted");
    let controller = Controller::new(shaky, State::default()).owns::<Deployment>();
    let operator = testing::run(fixture.manager().controller(controller));
    fixture
        .await_available("shaken", "True", "Reconciling")
        .await;
    fixture
        .create("later", Some(1))
        .await
        .expect("it is accepted");
    fixture
        .await_available("later", "True", "Reconciling")
        .await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn a_refused_resize_is_said_in_the_status(env: Environment) {
    let fixture = Fixture::new(&env, "resize").await;
    fixture
        .create("stuck", Some(3))
        .await
        .expect("it is accepted");
    fixture
        .with_operator(async {
            fixture
                .await_available("stuck", "True", "Reconciling")
                .await;
            fixture.refuse_deployments("UPDATE").await;
            let touch = async || {
                let (params, patch) =
                    merge(json!({"metadata": {"annotations": {"touched": "yes"}}}));
                fixture
                    .deployments()
                    .patch("stuck", &params, &patch)
                    .await
                    .map(|_| ())
            };
            fixture.await_refusal(touch).await;

            let (params, patch) = merge(json!({"spec": {"size": 1}}));
            fixture
                .memcacheds()
                .patch("stuck", &params, &patch)
                .await
                .expect("the size changes");
            let condition = fixture.await_available("stuck", "False", "Resizing").await;
            let start = "Failed to update the size for the custom resource (stuck): (";
            assert!(
                condition.message.starts_with(start),
                "{}",
                condition.message
            );

            fixture.allow_deployments("UPDATE").await;
            fixture.await_replicas("stuck", 1).await;
            fixture
                .await_available("stuck", "True", "Reconciling")
                .await;
        })
        .await;
}

#[rbuilder::envtest::test]
async fn a_creation_asks_to_be_looked_at_again_in_a_minute(env: Environment) {
    let fixture = Fixture::new(&env, "again").await;
    fixture
        .create("once", Some(3))
        .await
        .expect("it is accepted");
    let created = fixture
        .reconcile_once("once")
        .await
        .expect("the Deployment is made");
    assert_eq!(created, Action::requeue(Duration::from_secs(60)));
    let settled = fixture
        .reconcile_once("once")
        .await
        .expect("the status is written");
    assert_eq!(settled, Action::await_change());
    let condition = fixture
        .available("once")
        .await
        .expect("there is a condition");
    assert_eq!(condition.status, "True");
}

#[rbuilder::envtest::test]
async fn a_resize_asks_to_be_looked_at_again_soon(env: Environment) {
    let fixture = Fixture::new(&env, "soon").await;
    fixture
        .create("sized", Some(3))
        .await
        .expect("it is accepted");
    fixture
        .reconcile_once("sized")
        .await
        .expect("the Deployment is made");
    let (params, patch) = merge(json!({"spec": {"size": 1}}));
    fixture
        .memcacheds()
        .patch("sized", &params, &patch)
        .await
        .expect("the size changes");
    let resized = fixture
        .reconcile_once("sized")
        .await
        .expect("the Deployment changes");
    assert_eq!(resized, Action::requeue(Duration::from_secs(1)));
    fixture.await_replicas("sized", 1).await;
}
