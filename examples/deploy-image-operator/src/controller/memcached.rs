// SPDX-License-Identifier: Apache-2.0

//! The Memcached controller: runs an image in a Deployment for each object.

use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStatus};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, PodSecurityContext, PodSpec, PodTemplateSpec,
    SeccompProfile, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::ResourceExt;
use rbuilder::conditions::{self, Health};
use rbuilder::{Action, Controller, Ctx, Result, rbac};
use tracing::info;

use crate::api::v1alpha1::Memcached;

/// Keeps an object until [`cleanup`] has succeeded.
pub const FINALIZER: &str = "cache.example.com/finalizer";

/// Name of the container, and the label `app.kubernetes.io/name` of the pods.
const NAME: &str = "memcached";

/// The label `app.kubernetes.io/managed-by` of resources that the controller creates.
const MANAGED_BY: &str = "deploy-image-operator";

/// The image of the instances.
pub const IMAGE: &str = "memcached:1.6.26-alpine3.19";

/// Environment variable of the manager that replaces [`IMAGE`].
const IMAGE_VARIABLE: &str = "RELATED_IMAGE_CACHE_MEMCACHED";

/// The command of an instance and its arguments, one per line.
const COMMAND: &str = "\
memcached
--memory-limit=64
-o
modern
-v";

/// State shared by all reconciles, such as settings and clients of other services.
#[derive(Debug)]
pub struct State {
    /// The image of the instances.
    pub image: String,
}

impl Default for State {
    fn default() -> Self {
        State {
            image: env::var(IMAGE_VARIABLE).unwrap_or_else(|_| IMAGE.to_owned()),
        }
    }
}

/// Returns the controller for the manager. Add the resources that it owns or watches here.
pub fn controller() -> Controller<Memcached, State> {
    Controller::new(reconcile, State::default())
        .finalizer(FINALIZER, cleanup)
        .owns::<Deployment>()
}

/// Moves the cluster toward the desired state of one object. Runs after the object or a resource that it owns has
/// changed; must be idempotent, because it may run at any time.
#[rbac(
    groups = "cache.example.com",
    resources = "memcacheds",
    verbs = ["get", "list", "watch", "patch"]
)]
#[rbac(
    groups = "cache.example.com",
    resources = "memcacheds/status",
    verbs = ["patch"]
)]
// Owner references require this on clusters with the admission plugin OwnerReferencesPermissionEnforcement.
#[rbac(
    groups = "cache.example.com",
    resources = "memcacheds/finalizers",
    verbs = ["update"]
)]
#[rbac(
    groups = "apps",
    resources = "deployments",
    verbs = ["get", "list", "watch", "create", "patch"]
)]
pub async fn reconcile(object: Arc<Memcached>, ctx: Ctx<State>) -> Result {
    info!(name = object.name_any(), "reconciling");
    let desired = desired_deployment(&object, &ctx.image);
    let applied = ctx.apply_owned(&*object, desired).await;

    // Failures are part of the status, so that users of the object see them.
    let size = object.spec.size;
    let available = match applied.as_ref().map(ready_replicas) {
        Ok(ready) => conditions::new("Available", ready >= size, availability_reason(ready, size))
            .message(format!("{ready} of {size} replicas are ready")),
        Err(error) => conditions::new("Available", false, "ApplyFailed").message(error.to_string()),
    };
    let (health, reason, message) = match &applied {
        Ok(deployment) => rollout(deployment, size),
        Err(error) => (Health::of_error(error), "ApplyFailed", error.to_string()),
    };
    let mut status = object.status.clone().unwrap_or_default();
    status.observed_generation = object.metadata.generation;
    conditions::set(&mut status.conditions, available.observed(&*object));
    conditions::set_health(&mut status.conditions, &*object, health, reason, message);
    ctx.apply_status(&*object, status).await?;
    applied?;
    Ok(Action::await_change())
}

/// Runs when an object is being deleted, before it is removed: release external resources here. The
/// Deployment is garbage-collected with its owner.
pub async fn cleanup(object: Arc<Memcached>, ctx: Ctx<State>) -> Result {
    let note = format!("{} is being deleted", object.name_any());
    ctx.normal(&*object, "Deleting", "Delete", note);
    Ok(Action::await_change())
}

/// Returns the desired Deployment of an object.
fn desired_deployment(object: &Memcached, image: &str) -> Deployment {
    let name = object.name_any();
    let selector = selector_labels(&name);
    let mut labels = selector.clone();
    // The version is not part of the selector, because a selector cannot change.
    if let Some(tag) = image_tag(image) {
        labels.insert("app.kubernetes.io/version".to_owned(), tag.to_owned());
    }
    Deployment {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: object.namespace(),
            labels: Some(labels.clone()),
            ..ObjectMeta::default()
        },
        spec: DeploymentSpec {
            replicas: Some(object.spec.size),
            selector: LabelSelector {
                match_labels: Some(selector),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod_spec(object, image)),
            },
            ..DeploymentSpec::default()
        },
        ..Deployment::default()
    }
}

/// Returns the pod of one instance, which conforms to the Pod Security Standard "restricted".
fn pod_spec(object: &Memcached, image: &str) -> PodSpec {
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
            name: NAME.to_owned(),
            image: Some(image.to_owned()),
            image_pull_policy: Some("IfNotPresent".to_owned()),
            command: Some(COMMAND.lines().map(str::to_owned).collect()),
            ports: Some(vec![ContainerPort {
                container_port: object.spec.container_port,
                ..ContainerPort::default()
            }]),
            security_context: Some(SecurityContext {
                run_as_user: Some(1001),
                run_as_non_root: Some(true),
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

/// Returns the labels by which the Deployment of an object selects its pods.
fn selector_labels(name: &str) -> BTreeMap<String, String> {
    [
        ("app.kubernetes.io/name", NAME),
        ("app.kubernetes.io/instance", name),
        ("app.kubernetes.io/managed-by", MANAGED_BY),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

/// Returns the number of ready replicas, or 0 while the status describes an earlier spec.
fn ready_replicas(deployment: &Deployment) -> i32 {
    observed_status(deployment).map_or(0, |status| status.ready_replicas.unwrap_or(0))
}

/// Returns the health of an object with its reason and message: it is ready once all replicas run the current spec.
fn rollout(deployment: &Deployment, size: i32) -> (Health, &'static str, String) {
    let Some(status) = observed_status(deployment) else {
        let message = "waiting for the Deployment controller".to_owned();
        return (Health::InProgress, "RollingOut", message);
    };
    let mut conditions = status.conditions.iter().flatten();
    let late = conditions
        .find(|condition| condition.reason.as_deref() == Some("ProgressDeadlineExceeded"));
    if let Some(late) = late {
        let message = late.message.clone().unwrap_or_default();
        return (Health::Failed, "RolloutFailed", message);
    }
    let updated = status.updated_replicas.unwrap_or(0);
    let ready = status.ready_replicas.unwrap_or(0);
    let outdated = status.replicas.unwrap_or(0) - updated;
    let message = format!("{updated} of {size} replicas are updated, and {ready} are ready");
    if updated >= size && outdated <= 0 && ready >= size {
        (Health::Ready, "RolledOut", message)
    } else {
        (Health::InProgress, "RollingOut", message)
    }
}

/// Returns the status of a Deployment, unless it describes an earlier spec.
fn observed_status(deployment: &Deployment) -> Option<&DeploymentStatus> {
    let generation = deployment.metadata.generation;
    let status = deployment.status.as_ref()?;
    (status.observed_generation >= generation).then_some(status)
}

/// Returns the reason of the condition `Available`.
fn availability_reason(ready: i32, size: i32) -> &'static str {
    if ready >= size {
        "AllReplicasReady"
    } else {
        "ReplicasNotReady"
    }
}

/// Returns the tag of an image, if it is valid as a label: the part after the last colon, unless that is a port or a
/// digest.
fn image_tag(image: &str) -> Option<&str> {
    let (image, _digest) = image.split_once('@').unwrap_or((image, ""));
    let (_, tag) = image.rsplit_once(':')?;
    let is_bounded = tag.starts_with(char::is_alphanumeric) && tag.ends_with(char::is_alphanumeric);
    (is_bounded && !tag.contains('/') && tag.len() <= 63).then_some(tag)
}

#[cfg(test)]
mod tests {
    use super::image_tag;

    #[test]
    fn the_tag_of_an_image_is_neither_a_port_nor_a_digest() {
        for (image, tag) in [
            ("app:1.6.26-alpine", Some("1.6.26-alpine")),
            ("app", None),
            ("registry:5000/app", None),
            ("registry:5000/app:1.6", Some("1.6")),
            ("app@sha256:0123", None),
            ("app:1.6@sha256:0123", Some("1.6")),
            ("app:ends-with-", None),
            ("app:_starts-so", None),
        ] {
            assert_eq!(image_tag(image), tag, "{image}");
        }
    }
}
