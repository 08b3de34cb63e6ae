// SPDX-License-Identifier: Apache-2.0

//! A namespace with a running operator, and helpers for tests.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use deploy_image_operator::api::v1alpha1::{Memcached, MemcachedSpec};
use deploy_image_operator::{controller, webhook};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Error};
use rbuilder::conditions::{self, Condition};
use rbuilder::envtest::{Environment, WebhookServer, eventually};
use rbuilder::testing::{self, Running};
use rbuilder::{Manager, ManagerArgs};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Longer than anything here takes on a busy machine.
pub const LONG: Duration = Duration::from_secs(30);

/// Status and reason of the condition Available, before and after all replicas are ready.
pub const UNAVAILABLE: (&str, &str) = ("False", "ReplicasNotReady");
pub const AVAILABLE: (&str, &str) = ("True", "AllReplicasReady");

/// The message with which the API server rejects a request on demand.
pub const REFUSAL: &str = "not today";

/// The namespace of one test, on the API server that all tests share.
pub struct Fixture {
    env: Environment,
    pub client: Client,
    pub namespace: String,
}

impl Fixture {
    pub async fn new(env: Environment) -> Self {
        env.install_crds("config/crd/bases").await.unwrap();
        let namespace = env.namespace("deploy-image").await.unwrap();
        let client = env.client();
        Fixture {
            env,
            client,
            namespace,
        }
    }

    pub fn args(&self) -> ManagerArgs {
        ManagerArgs {
            watch_namespace: self.namespace.clone(),
            ..ManagerArgs::for_tests()
        }
    }

    /// Starts the controller in this process.
    pub fn operator(&self) -> Running {
        let manager = Manager::with_client("deploy-image", self.client.clone(), self.args());
        testing::run(controller::register(manager))
    }

    /// Starts the webhook in this process and makes the API server call it.
    pub async fn webhook(&self) -> (WebhookServer, Running) {
        let server = self.asked().await;
        let args = server.args(self.args());
        let manager = Manager::with_client("deploy-image", self.client.clone(), args);
        let running = testing::run(webhook::register(manager));
        server.wait_until_served().await.unwrap();
        (server, running)
    }

    /// Makes the API server call the webhook for the objects of this namespace.
    pub async fn asked(&self) -> WebhookServer {
        let installed = self
            .env
            .install_webhooks("config/webhook/manifests.yaml", &self.namespace);
        installed.await.unwrap()
    }

    pub fn memcacheds(&self) -> Api<Memcached> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub async fn try_create(&self, name: &str, size: i32) -> Result<Memcached, Error> {
        let spec = MemcachedSpec {
            size,
            container_port: 12345,
        };
        let object = Memcached::new(name, spec);
        self.memcacheds()
            .create(&PostParams::default(), &object)
            .await
    }

    pub async fn create(&self, name: &str, size: i32) -> Memcached {
        self.try_create(name, size).await.unwrap()
    }

    /// Waits until the condition Available has this status and reason. Returns the condition.
    pub async fn await_condition(&self, name: &str, wanted: (&str, &str)) -> Condition {
        eventually(LONG, || async {
            let found = self.memcacheds().get(name).await.unwrap();
            let conditions = found.status.unwrap_or_default().conditions;
            match conditions::find(&conditions, "Available") {
                Some(found) if (&*found.status, &*found.reason) == wanted => Ok(found.clone()),
                found => Err(format!("expected {wanted:?}, found {found:?}")),
            }
        })
        .await
    }

    /// Writes the status like the Deployment controller, which does not run here.
    pub async fn report_ready(&self, name: &str, ready: i32) {
        let deployments = self.deployments();
        let deployment = deployments.get(name).await.unwrap();
        let status = merge(json!({"status": {
            "observedGeneration": deployment.metadata.generation,
            "replicas": ready,
            "readyReplicas": ready,
        }}));
        let params = PatchParams::default();
        let patched = deployments.patch_status(name, &params, &status).await;
        patched.unwrap();
    }

    pub async fn await_replicas(&self, name: &str, wanted: i32) -> Deployment {
        eventually(LONG, || async {
            let found = self.deployments().get(name).await;
            let found = found.map_err(|error| error.to_string())?;
            match found.spec.replicas {
                Some(count) if count == wanted => Ok(found),
                count => Err(format!("want {wanted} replicas, found {count:?}")),
            }
        })
        .await
    }

    /// Makes the API server reject writes of a resource in this namespace if the expression is
    /// false.
    pub async fn refuse(&self, resource: (&str, &str), operation: &str, expression: &str) {
        let (group, resource) = resource;
        let policy: ValidatingAdmissionPolicy = from_json(json!({
            "metadata": {"name": self.namespace},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [group], "apiVersions": ["*"],
                    "operations": [operation], "resources": [resource],
                }]},
                "validations": [{"expression": expression, "message": REFUSAL}],
            },
        }));
        let binding: ValidatingAdmissionPolicyBinding = from_json(json!({
            "metadata": {"name": self.namespace},
            "spec": {
                "policyName": self.namespace,
                "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": {
                    "matchLabels": {"kubernetes.io/metadata.name": self.namespace},
                }},
            },
        }));
        let params = PostParams::default();
        let policies = Api::all(self.client.clone());
        policies.create(&params, &policy).await.unwrap();
        let bindings = Api::all(self.client.clone());
        bindings.create(&params, &binding).await.unwrap();
    }

    /// Reverts [`refuse`](Self::refuse).
    pub async fn allow(&self) {
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(self.client.clone());
        let gone = DeleteParams::default();
        bindings.delete(&self.namespace, &gone).await.unwrap();
    }
}

/// Waits until a rejection is in force, because the API server reads policies in the background.
pub async fn await_refusal<T: std::fmt::Debug>(probe: impl AsyncFn() -> Result<T, Error>) {
    eventually(LONG, || async {
        match probe().await {
            Err(Error::Api(status)) if status.message.contains(REFUSAL) => Ok(()),
            other => Err(format!("not refused yet: {other:?}")),
        }
    })
    .await;
}

pub fn from_json<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the object is well-formed")
}

pub fn merge(patch: Value) -> Patch<Value> {
    Patch::Merge(patch)
}

pub fn dry_run() -> PatchParams {
    PatchParams {
        dry_run: true,
        ..PatchParams::default()
    }
}

/// Returns a Deployment to check whether one can be created.
pub fn deployment(name: &str) -> Deployment {
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

/// The deployed program in a process of its own.
pub struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    pub fn start(fixture: &Fixture, server: &WebhookServer, image: &str) -> Self {
        let name = format!("{}.log", fixture.namespace);
        let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let port = server.args(fixture.args()).webhook_port;
        let child = Command::new(env!("CARGO_BIN_EXE_manager"))
            .arg("--health-probe-bind-address=0")
            .arg(format!("--watch-namespace={}", fixture.namespace))
            .arg(format!("--webhook-port={port}"))
            .arg("--webhook-cert-path")
            .arg(server.certificates())
            .env("KUBECONFIG", fixture.env.kubeconfig_path())
            .env("RELATED_IMAGE_CACHE_MEMCACHED", image)
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Program { child, log }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        println!("the log of the program:\n{log}");
        let _ = std::fs::remove_file(&self.log);
    }
}
