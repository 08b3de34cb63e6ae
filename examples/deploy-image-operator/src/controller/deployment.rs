// SPDX-License-Identifier: Apache-2.0

//! The Deployment that a Memcached asks for.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, PodSecurityContext, PodSpec, PodTemplateSpec,
    SeccompProfile, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::ResourceExt;

use crate::api::v1alpha1::Memcached;

type Labels = BTreeMap<String, String>;

/// Returns the desired Deployment of a Memcached.
pub(super) fn desired_deployment(memcached: &Memcached, image: &str) -> Deployment {
    let name = memcached.name_any();
    let selector = selector_labels(&name);
    let mut labels = selector.clone();
    // The version is no part of the selector, which cannot change.
    if let Some(tag) = image_tag(image) {
        labels.insert("app.kubernetes.io/version".to_owned(), tag.to_owned());
    }
    let pods = ObjectMeta {
        labels: Some(labels.clone()),
        ..ObjectMeta::default()
    };
    Deployment {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: memcached.namespace(),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        spec: Some(DeploymentSpec {
            replicas: Some(memcached.spec.size),
            selector: LabelSelector {
                match_labels: Some(selector),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(pods),
                spec: Some(pod_spec(image, memcached.spec.container_port)),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

/// Returns the number of ready replicas, or 0 while the status describes an earlier spec.
pub(super) fn ready_replicas(deployment: &Deployment) -> i32 {
    let generation = deployment.metadata.generation;
    match &deployment.status {
        Some(status) if status.observed_generation >= generation => {
            status.ready_replicas.unwrap_or(0)
        }
        _ => 0,
    }
}

/// Returns the labels by which the Deployment selects its pods.
fn selector_labels(name: &str) -> Labels {
    let labels = [
        ("app.kubernetes.io/name", "memcached"),
        ("app.kubernetes.io/instance", name),
        ("app.kubernetes.io/managed-by", "MemcachedController"),
    ];
    labels
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// Returns the tag of an image, if it fits into a label: what follows the last colon, unless that is a port or a digest.
fn image_tag(image: &str) -> Option<&str> {
    let (image, _digest) = image.split_once('@').unwrap_or((image, ""));
    let (_, tag) = image.rsplit_once(':')?;
    (!tag.contains('/') && tag.len() <= 63).then_some(tag)
}

/// Returns the pod of one instance, as the Pod Security Standard `restricted` wants it.
fn pod_spec(image: &str, port: i32) -> PodSpec {
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
            image: Some(image.to_owned()),
            image_pull_policy: Some("IfNotPresent".to_owned()),
            command: Some(command.map(str::to_owned).to_vec()),
            ports: Some(vec![ContainerPort {
                container_port: port,
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

#[cfg(test)]
mod tests {
    use super::image_tag;

    #[test]
    fn the_image_tag_an_image_is_neither_a_port_nor_a_digest() {
        let long = format!("memcached:{}", "x".repeat(64));
        for (image, tag) in [
            ("memcached:1.6.26-alpine3.19", Some("1.6.26-alpine3.19")),
            ("memcached", None),
            ("registry:5000/memcached", None),
            ("registry:5000/memcached:1.6", Some("1.6")),
            ("memcached@sha256:0123", None),
            ("memcached:1.6@sha256:0123", Some("1.6")),
            (&long, None),
        ] {
            assert_eq!(image_tag(image), tag, "{image}");
        }
    }
}
