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
use rbuilder::{Error, Result};

use crate::api::v1alpha1::Memcached;

/// The longest value a label may have.
const LONGEST_LABEL: usize = 63;

type Labels = BTreeMap<String, String>;

/// What runs the instances of one Memcached.
pub(super) fn of(memcached: &Memcached, image: Option<&str>) -> Result<Deployment, Error> {
    // Another environment is another process, so there is nothing to wait for.
    let image = image.ok_or_else(|| {
        Error::terminal("unable to find MEMCACHED_IMAGE environment variable with the image")
    })?;
    let name = memcached.name_any();
    if name.len() > LONGEST_LABEL {
        let length = name.len();
        return Err(Error::terminal(format!(
            "its name labels the pods, and a label has at most {LONGEST_LABEL} characters, not {length}"
        )));
    }
    let selector = selector(&name);
    let mut labels = selector.clone();
    // The version is no part of the selector, which nobody can change.
    if let Some(tag) = tag_of(image) {
        labels.insert("app.kubernetes.io/version".to_owned(), tag.to_owned());
    }
    let pods = ObjectMeta {
        labels: Some(labels.clone()),
        ..ObjectMeta::default()
    };
    Ok(Deployment {
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
                spec: Some(pod(image, memcached.spec.container_port)),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    })
}

/// How many instances a Deployment is to run.
pub(super) fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.replicas
}

/// The labels by which the Deployment knows its pods.
fn selector(name: &str) -> Labels {
    let labels = [
        ("app.kubernetes.io/name", "memcached"),
        ("app.kubernetes.io/instance", name),
        ("app.kubernetes.io/managed-by", "MemcachedController"),
    ];
    labels
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// The tag of an image: what stands behind the last colon, unless that is a port or a digest.
fn tag_of(image: &str) -> Option<&str> {
    let (image, _digest) = image.split_once('@').unwrap_or((image, ""));
    let (_, tag) = image.rsplit_once(':')?;
    (!tag.contains('/') && tag.len() <= LONGEST_LABEL).then_some(tag)
}

/// One instance, with what the `restricted` Pod Security Standard asks for.
fn pod(image: &str, port: i32) -> PodSpec {
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
    use super::tag_of;

    #[test]
    fn the_tag_of_an_image_is_neither_a_port_nor_a_digest() {
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
            assert_eq!(tag_of(image), tag, "{image}");
        }
    }
}
