// SPDX-License-Identifier: Apache-2.0

//! The controller of Memcached: keeps one Deployment for each object.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use rbuilder::conditions::{self, Health};
use rbuilder::{Action, Controller, Ctx, Result, rbac};
use serde_json::json;

use crate::api::v1alpha1::{Memcached, MemcachedStatus};

/// State shared by all reconciles.
#[derive(Debug, Default)]
pub struct State {}

/// Returns the controller that the manager runs.
pub fn controller() -> Controller<Memcached, State> {
    Controller::new(reconcile, State::default()).owns::<Deployment>()
}

/// Brings the Deployment of a Memcached to its desired state and reports the observed state.
#[rbac(groups = "cache.example.com", resources = "memcacheds", verbs = ["get", "list", "watch"])]
#[rbac(groups = "cache.example.com", resources = "memcacheds/status", verbs = ["get", "patch"])]
#[rbac(groups = "cache.example.com", resources = "memcacheds/finalizers", verbs = ["update"])]
#[rbac(
    groups = "apps",
    resources = "deployments",
    verbs = ["get", "list", "watch", "create", "patch"]
)]
pub async fn reconcile(memcached: Arc<Memcached>, ctx: Ctx<State>) -> Result {
    let desired = desired_deployment(&memcached)?;
    let deployment = ctx.apply_owned(&*memcached, desired).await?;
    let status = observed_status(&memcached, &deployment);
    ctx.apply_status(&*memcached, status).await?;
    Ok(Action::await_change())
}

/// Returns the desired Deployment of a Memcached.
fn desired_deployment(memcached: &Memcached) -> Result<Deployment> {
    let name = memcached.name_any();
    let labels = json!({"app.kubernetes.io/name": "memcached", "app.kubernetes.io/instance": name});
    let deployment = json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": memcached.spec.size,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": 11211,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [{
                        "name": "memcached",
                        "image": "memcached:1.6.26-alpine3.19",
                        "args": ["--memory-limit=64"],
                        "ports": [{"name": "memcached", "containerPort": 11211}],
                        "readinessProbe": {"tcpSocket": {"port": "memcached"}},
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                },
            },
        },
    });
    Ok(serde_json::from_value(deployment)?)
}

/// Returns the status of a Memcached: it is available and ready once all of its replicas are ready.
fn observed_status(memcached: &Memcached, deployment: &Deployment) -> MemcachedStatus {
    let (size, ready) = (memcached.spec.size, ready_replicas(deployment));
    let (health, reason) = if ready >= size {
        (Health::Ready, "AllReplicasReady")
    } else {
        (Health::InProgress, "ReplicasNotReady")
    };
    let message = format!("{ready} of {size} replicas are ready");
    let available = conditions::new("Available", ready >= size, reason)
        .message(&message)
        .observed(memcached);
    let mut status = memcached.status.clone().unwrap_or_default();
    status.observed_generation = memcached.metadata.generation;
    conditions::set(&mut status.conditions, available);
    conditions::set_health(&mut status.conditions, memcached, health, reason, message);
    status
}

/// Returns the number of ready replicas, or 0 while the status describes an earlier spec.
fn ready_replicas(deployment: &Deployment) -> i32 {
    let generation = deployment.metadata.generation;
    match &deployment.status {
        Some(status) if status.observed_generation >= generation => {
            status.ready_replicas.unwrap_or(0)
        }
        _ => 0,
    }
}
