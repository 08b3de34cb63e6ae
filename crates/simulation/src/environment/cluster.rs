//! Test cluster for behaviors.

use std::time::Duration;

use rbuilder_testing::fake::{ApiServer, StoredObject};
use serde_json::{Value, json};

use super::{Act, Environment, of_cluster};
use crate::history::Pace;
use crate::network::{Network, Rules};
use crate::timeline::Actor;
use crate::world::ObjectName;

/// Simulated seconds until even a slow rollout has completed.
const SETTLED: u32 = 600;

/// A simulated cluster with a single workload named `web`.
pub(super) struct Cluster {
    network: Network,
    pub(super) environment: Environment,
    name: ObjectName,
}

impl Cluster {
    /// Creates the workload and waits for it to settle.
    pub(super) async fn with(plural: &str, workload: &Value, pace: Pace) -> Self {
        let mut cluster = Self::empty(plural, pace);
        cluster.create(workload).await;
        cluster.settle(|_| ()).await;
        cluster
    }

    /// A cluster without the workload, or other object named `web`.
    pub(super) fn empty(plural: &str, pace: Pace) -> Self {
        Self::of(plural, pace, true)
    }

    /// An empty cluster in which workloads have no Pods.
    pub(super) fn without_pods(plural: &str, pace: Pace) -> Self {
        Self::of(plural, pace, false)
    }

    fn of(plural: &str, pace: Pace, has_pods: bool) -> Self {
        let group = match plural {
            "persistentvolumeclaims" | "pods" | "services" => "",
            "ingresses" => "networking.k8s.io",
            "jobs" => "batch",
            _ => "apps",
        };
        Self {
            network: Network::new(
                ApiServer::new().collecting_garbage(),
                Vec::new(),
                Rules::default(),
            ),
            environment: Environment::new(of_cluster(has_pods, true), pace),
            name: ObjectName {
                group: group.to_owned(),
                plural: plural.to_owned(),
                version: "v1".to_owned(),
                namespace: "default".to_owned(),
                name: "web".to_owned(),
            },
        }
    }

    pub(super) async fn create(&self, workload: &Value) {
        self.network.create(Actor::User, &self.name, workload).await;
    }

    pub(super) async fn add(&self, plural: &str, object: &Value) {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, _) = api_version.rsplit_once('/').unwrap_or_default();
        Act::create(group, plural, object.clone())
            .take(&self.network)
            .await;
    }

    pub(super) fn fill_quota(&self, resource: &str) {
        self.network.fill_quota(&self.name.namespace, resource);
    }

    /// Evicts a Pod of the workload.
    pub(super) async fn evict(&self, pod: &str) {
        self.network
            .evict_later(&format!("pods {}/{pod}", self.name.namespace));
        tokio::time::sleep(Duration::from_secs(11)).await;
    }

    pub(super) async fn patch(&self, patch: &Value) {
        self.network.merge(Actor::User, &self.name, "", patch).await;
    }

    /// Runs the environment until it settles, calling `observe` every second.
    pub(super) async fn settle(&mut self, mut observe: impl FnMut(&Self)) {
        for _ in 0..SETTLED {
            self.environment.plan(&self.network);
            self.environment.act(&self.network).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            observe(self);
        }
    }

    pub(super) fn objects(&self, plural: &str) -> Vec<StoredObject> {
        let mut objects = self.network.server.objects();
        objects.retain(|stored| stored.resource == plural);
        objects
    }
}

/// A workload with two replicas of image `web:1`.
pub(super) fn workload(kind: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
            },
        },
    })
}

pub(super) fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.expect("a runtime").block_on(test);
}
