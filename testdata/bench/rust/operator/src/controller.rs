// SPDX-License-Identifier: Apache-2.0

//! Manages a Deployment for each Memcached and reports it in the status.
//! testdata/bench/go/controller is the same controller in Go, with the same requests and labels.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, PodSecurityContext, PodSpec, PodTemplateSpec,
    ResourceRequirements, SeccompProfile, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use rbuilder::conditions;
use rbuilder::{Action, Controller, Ctx, Result};

use crate::api::{Memcached, MemcachedStatus};
use crate::latencies::Latencies;

/// The annotation with the generation of the Memcached from which a Deployment was created.
const APPLIED: &str = "bench.example.com/generation";

/// The state of the reconciler.
pub struct State {
    pub latencies: Arc<Latencies>,
}

/// Returns the controller with its watches.
pub fn controller(latencies: Arc<Latencies>) -> Controller<Memcached, State> {
    Controller::new(reconcile, State { latencies }).owns::<Deployment>()
}

/// Applies the Deployment of a Memcached and updates its status.
pub async fn reconcile(memcached: Arc<Memcached>, ctx: Ctx<State>) -> Result {
    ctx.latencies.record(memcached.annotations());

    let generation = memcached
        .metadata
        .generation
        .unwrap_or_default()
        .to_string();
    let namespace = memcached.namespace().unwrap_or_default();
    let deployments = ctx.cached::<PartialObjectMeta<Deployment>>()?;
    let deployment = deployments.named(&namespace, &memcached.name_any());
    let applied = deployment
        .as_ref()
        .and_then(|found| found.annotations().get(APPLIED));
    if applied != Some(&generation) {
        ctx.apply_owned(&*memcached, deployment_for(&memcached, generation))
            .await?;
    }

    let status = memcached.status.as_ref();
    let mut conditions = status.map_or_else(Vec::new, |status| status.conditions.clone());
    let available = conditions::new("Available", true, "Reconciling")
        .message(format!(
            "Deployment for custom resource ({}) with {} replicas created successfully",
            memcached.name_any(),
            memcached.spec.size
        ))
        .observed(&*memcached);
    if conditions::set(&mut conditions, available) {
        ctx.apply_status(&*memcached, MemcachedStatus { conditions })
            .await?;
    }
    Ok(Action::await_change())
}

/// Returns the desired Deployment of a Memcached.
fn deployment_for(memcached: &Memcached, generation: String) -> Deployment {
    let name = memcached.name_any();
    let labels = BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), "memcached".to_owned()),
        ("app.kubernetes.io/instance".to_owned(), name.clone()),
        (
            "app.kubernetes.io/managed-by".to_owned(),
            "bench".to_owned(),
        ),
    ]);
    Deployment {
        metadata: ObjectMeta {
            name: Some(name),
            labels: Some(labels.clone()),
            annotations: Some([(APPLIED.to_owned(), generation)].into()),
            ..ObjectMeta::default()
        },
        spec: DeploymentSpec {
            replicas: Some(memcached.spec.size),
            selector: LabelSelector {
                match_labels: Some(labels.clone()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod_for(memcached)),
            },
            ..DeploymentSpec::default()
        },
        ..Deployment::default()
    }
}

fn pod_for(memcached: &Memcached) -> PodSpec {
    let spec = &memcached.spec;
    let mut command = vec!["memcached".to_owned()];
    command.extend(spec.arguments.iter().cloned());
    let memory = Quantity(format!("{}Mi", spec.memory_megabytes));
    PodSpec {
        node_selector: Some(spec.node_selector.clone()),
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
            image: Some(spec.image.clone()),
            image_pull_policy: Some("IfNotPresent".to_owned()),
            command: Some(command),
            ports: Some(vec![ContainerPort {
                name: Some("memcached".to_owned()),
                container_port: spec.container_port,
                ..ContainerPort::default()
            }]),
            resources: Some(ResourceRequirements {
                limits: Some([("memory".to_owned(), memory)].into()),
                ..ResourceRequirements::default()
            }),
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
