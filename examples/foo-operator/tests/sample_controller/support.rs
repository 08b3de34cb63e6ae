// SPDX-License-Identifier: Apache-2.0

//! A namespace with a running operator, and helpers for tests.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use foo_operator::api::v1alpha1::{Foo, FooSpec};
use foo_operator::controller;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Error};
use rbuilder::envtest::{Environment, eventually};
use rbuilder::testing::{self, Running};
use rbuilder::{Manager, ManagerArgs};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Longer than anything here takes on a busy machine.
pub const LONG: Duration = Duration::from_secs(30);

/// The namespace of one test, on the API server that all tests share.
pub struct Fixture {
    env: Environment,
    pub client: Client,
    namespace: String,
}

impl Fixture {
    pub async fn new(env: Environment) -> Self {
        env.install_crds("config/crd/bases").await.unwrap();
        let namespace = env.namespace("foo").await.unwrap();
        let client = env.client();
        Fixture {
            env,
            client,
            namespace,
        }
    }

    /// Starts the operator in this process.
    pub fn operator(&self) -> Running {
        let args = ManagerArgs {
            watch_namespace: self.namespace.clone(),
            ..ManagerArgs::for_tests()
        };
        let manager = Manager::with_client("foo", self.client.clone(), args);
        testing::run(controller::register(manager))
    }

    pub fn foos(&self) -> Api<Foo> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub async fn create(&self, name: &str, deployment_name: &str, replicas: i32) -> Foo {
        self.try_create(name, deployment_name, replicas)
            .await
            .unwrap()
    }

    pub async fn try_create(
        &self,
        name: &str,
        deployment_name: &str,
        replicas: i32,
    ) -> Result<Foo, Error> {
        let spec = FooSpec {
            deployment_name: deployment_name.to_owned(),
            replicas: Some(replicas),
        };
        let object = Foo::new(name, spec);
        self.foos().create(&PostParams::default(), &object).await
    }

    pub async fn create_deployment(&self, deployment: &Deployment) -> Deployment {
        self.deployments()
            .create(&PostParams::default(), deployment)
            .await
            .unwrap()
    }

    pub async fn await_deployment(&self, name: &str, replicas: i32) -> Deployment {
        eventually(LONG, || async {
            let found = self.deployments().get(name).await;
            let found = found.map_err(|error| error.to_string())?;
            match found.spec.replicas {
                Some(count) if count == replicas => Ok(found),
                count => Err(format!("{name} has {count:?} replicas, not {replicas}")),
            }
        })
        .await
    }

    /// Reports this many available instances of a Deployment, like the Deployment controller.
    pub async fn set_available(&self, deployment: &str, count: i32) {
        let status = json!({"status": {
            "replicas": count, "readyReplicas": count, "availableReplicas": count,
        }});
        self.deployments()
            .patch_status(deployment, &PatchParams::default(), &Patch::Merge(status))
            .await
            .unwrap();
    }

    pub async fn await_available(&self, name: &str, count: i32) {
        eventually(LONG, || async {
            let found = self.foos().get(name).await.unwrap();
            let available = found.status.map(|status| status.available_replicas);
            (available == Some(count))
                .then_some(())
                .ok_or(format!("{name} says {available:?}, not {count}"))
        })
        .await;
    }

    /// Returns the event about a Foo with this reason. There must be at most one.
    pub async fn event(&self, name: &str, reason: &str) -> Option<Event> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let events = events.list(&ListParams::default()).await.unwrap();
        let mut found = events.items.into_iter().filter(|event| {
            let regarding = event.regarding.clone().unwrap_or_default();
            event.reason.as_deref() == Some(reason) && regarding.name.as_deref() == Some(name)
        });
        let first = found.next();
        assert_eq!(found.next(), None, "the events are one series");
        first
    }

    /// Returns how often an event was recorded.
    pub async fn times(&self, name: &str, reason: &str) -> i32 {
        let event = self.event(name, reason).await;
        event.map_or(0, |event| event.series.map_or(1, |series| series.count))
    }

    pub async fn await_times(&self, name: &str, reason: &str, at_least: i32) -> i32 {
        eventually(LONG, || async {
            let times = self.times(name, reason).await;
            (times >= at_least)
                .then_some(times)
                .ok_or(format!("{reason} was told {times} times, not {at_least}"))
        })
        .await
    }
}

/// The deployed program in a process of its own, for tests of its log.
pub struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    pub fn start(fixture: &Fixture) -> Self {
        let name = format!("{}.log", fixture.namespace);
        let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let child = Command::new(env!("CARGO_BIN_EXE_manager"))
            .args(["--health-probe-bind-address=0", "--log-format=json"])
            .arg(format!("--watch-namespace={}", fixture.namespace))
            .env("KUBECONFIG", fixture.env.kubeconfig_path())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Program { child, log }
    }

    pub fn lines_with(&self, text: &str) -> Vec<String> {
        let log = std::fs::read_to_string(&self.log).unwrap();
        let lines = log.lines().filter(|line| line.contains(text));
        lines.map(str::to_owned).collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}

pub fn from_json<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the object is well-formed")
}

/// Returns a Deployment of somebody else.
pub fn deployment(name: &str, owners: Value) -> Deployment {
    from_json(json!({
        "metadata": {"name": name, "ownerReferences": owners},
        "spec": {
            "replicas": 5,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }))
}

/// Returns a reference to an owner that does not exist.
pub fn owner(api_version: &str, kind: &str, name: &str, controller: bool) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "name": name, "controller": controller,
        "uid": "6f2b0b0a-0000-4000-8000-000000000000",
    })
}

pub async fn patch<K: Clone + DeserializeOwned + std::fmt::Debug>(
    api: &Api<K>,
    name: &str,
    patch: Value,
) -> K {
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap()
}
