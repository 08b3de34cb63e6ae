// SPDX-License-Identifier: Apache-2.0

//! Keeps one Deployment per Memcached, of the size it asks for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, PodSecurityContext, PodSpec, PodTemplateSpec,
    SeccompProfile, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::{Api, ResourceExt};
use rbuilder::conditions::{self, Status};
use rbuilder::{Action, Controller, Ctx, Error, Result, rbac};

use crate::api::v1alpha1::{Memcached, MemcachedStatus};

/// The image every instance runs.
const IMAGE: &str = "memcached:1.6.26-alpine3.19";

/// The condition that says whether the instances are there.
const AVAILABLE: &str = "Available";

/// The longest value a label may have; the name of the object becomes one.
const LONGEST_LABEL: usize = 63;

/// What the reconciler needs beside the object.
#[derive(Debug, Default)]
pub struct State {}

/// The controller: which objects wake the reconciler.
pub fn controller() -> Controller<Memcached, State> {
    Controller::new(reconcile, State::default()).owns::<Deployment>()
}

/// Brings the cluster closer to what one Memcached asks for.
///
/// It runs when the object or its Deployment changes, and again after an error, later each time.
#[rbac(
    groups = "cache.example.com",
    resources = "memcacheds",
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
)]
#[rbac(
    groups = "cache.example.com",
    resources = "memcacheds/status",
    verbs = ["get", "update", "patch"]
)]
#[rbac(
    groups = "cache.example.com",
    resources = "memcacheds/finalizers",
    verbs = ["update"]
)]
#[rbac(
    groups = "apps",
    resources = "deployments",
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
)]
pub async fn reconcile(memcached: Arc<Memcached>, ctx: Ctx<State>) -> Result {
    let name = memcached.name_any();
    if conditions_of(&memcached).is_empty() {
        report(
            &memcached,
            &ctx,
            Status::Unknown,
            "Reconciling",
            "Starting reconciliation".into(),
        )
        .await?;
    }

    let deployment = match deployment_for(&memcached) {
        Ok(deployment) => deployment,
        Err(error) => {
            let message =
                format!("Failed to create Deployment for the custom resource ({name}): ({error})");
            report(&memcached, &ctx, Status::False, "Reconciling", message).await?;
            return Err(error);
        }
    };

    let deployments: Api<Deployment> = ctx.api(&*memcached);
    let Some(found) = deployments.get_opt(&name).await? else {
        ctx.apply_owned(&*memcached, deployment).await?;
        // The Deployment's own events bring us back sooner; this is for the case that none comes.
        return Ok(Action::requeue(Duration::from_secs(60)));
    };

    if replicas(&found) != replicas(&deployment) {
        if let Err(error) = ctx.apply_owned(&*memcached, deployment).await {
            let message =
                format!("Failed to update the size for the custom resource ({name}): ({error})");
            report(&memcached, &ctx, Status::False, "Resizing", message).await?;
            return Err(error);
        }
        return Ok(Action::requeue(Duration::from_secs(1)));
    }

    let size = replicas(&deployment);
    let message = format!(
        "Deployment for custom resource ({name}) with {size} replicas created successfully"
    );
    report(&memcached, &ctx, Status::True, "Reconciling", message).await?;
    Ok(Action::await_change())
}

/// Writes the condition `Available`, and only where it says something new.
async fn report(
    memcached: &Memcached,
    ctx: &Ctx<State>,
    status: Status,
    reason: &str,
    message: String,
) -> Result<(), Error> {
    let mut conditions = conditions_of(memcached).to_vec();
    let condition = conditions::new(AVAILABLE, status, reason)
        .message(message)
        .observed(memcached);
    if conditions::set(&mut conditions, condition) {
        ctx.apply_status(memcached, MemcachedStatus { conditions })
            .await?;
    }
    Ok(())
}

fn conditions_of(memcached: &Memcached) -> &[conditions::Condition] {
    memcached
        .status
        .as_ref()
        .map_or(&[], |status| &status.conditions)
}

fn replicas(deployment: &Deployment) -> i32 {
    let spec = deployment.spec.as_ref();
    spec.and_then(|spec| spec.replicas).unwrap_or_default()
}

/// The Deployment that one Memcached asks for.
fn deployment_for(memcached: &Memcached) -> Result<Deployment, Error> {
    let name = memcached.name_any();
    if name.len() > LONGEST_LABEL {
        let length = name.len();
        return Err(Error::terminal(format!(
            "its name labels the pods, and a label has at most {LONGEST_LABEL} characters, not {length}"
        )));
    }
    let labels = BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), "project".to_owned()),
        ("app.kubernetes.io/instance".to_owned(), name.clone()),
    ]);
    let metadata = |name: Option<String>| ObjectMeta {
        name,
        namespace: memcached.namespace(),
        labels: Some(labels.clone()),
        ..ObjectMeta::default()
    };
    Ok(Deployment {
        metadata: metadata(Some(name)),
        spec: Some(DeploymentSpec {
            replicas: Some(memcached.spec.size.unwrap_or_default()),
            selector: LabelSelector {
                match_labels: Some(labels.clone()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels.clone()),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod()),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    })
}

/// One instance, with what the `restricted` Pod Security Standard asks for.
fn pod() -> PodSpec {
    let command = ["memcached", "--memory-limit=64", "-o", "modern", "-v"];
    PodSpec {
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        containers: vec![Container {
            name: "memcached".to_owned(),
            image: Some(IMAGE.to_owned()),
            image_pull_policy: Some("IfNotPresent".to_owned()),
            command: Some(command.map(str::to_owned).to_vec()),
            ports: Some(vec![ContainerPort {
                container_port: 11211,
                name: Some("memcached".to_owned()),
                ..ContainerPort::default()
            }]),
            security_context: Some(SecurityContext {
                run_as_non_root: Some(true),
                run_as_user: Some(1001),
                allow_privilege_escalation: Some(false),
                capabilities: Some(Capabilities {
                    drop: Some(vec!["ALL".to_owned()]),
                    ..Capabilities::default()
                }),
                ..SecurityContext::default()
            }),
            ..Container::default()
        }],
        ..PodSpec::default()
    }
}
