//! Objects created by the operators in the corpus, and requests that bypass the library's safety
//! checks.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, Container, PersistentVolumeClaim, PersistentVolumeClaimSpec, PodSpec, PodTemplateSpec, Secret,
    Service, ServicePort, ServiceSpec, VolumeResourceRequirements,
};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, ResourceExt};
use rbuilder::{Ctx, Object, ObjectRef, Result, set_controller_reference};
use serde::Serialize;

use crate::kinds::namespace;

/// Label with the name of the owner.
pub(crate) const OWNER: &str = "simulated.example.com/owner";

pub(crate) fn metadata(name: impl Into<String>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        ..ObjectMeta::default()
    }
}

/// Returns labels that identify the owner.
pub(crate) fn labels(owner: &impl Object) -> BTreeMap<String, String> {
    BTreeMap::from([(OWNER.to_owned(), owner.name_any())])
}

pub(crate) fn config_map<const N: usize>(name: impl Into<String>, data: [(&str, String); N]) -> ConfigMap {
    let data = data.into_iter().map(|(key, value)| (key.to_owned(), value));
    ConfigMap {
        metadata: metadata(name),
        data: Some(data.collect()),
        ..ConfigMap::default()
    }
}

pub(crate) fn secret(name: impl Into<String>, user: &str) -> Secret {
    Secret {
        metadata: metadata(name),
        data: Some(BTreeMap::from([
            ("user".to_owned(), ByteString(user.as_bytes().to_vec())),
            ("password".to_owned(), ByteString(b"correct horse".to_vec())),
        ])),
        ..Secret::default()
    }
}

/// Returns a claim for this many GiB.
pub(crate) fn claim(name: impl Into<String>, storage: i32) -> PersistentVolumeClaim {
    let requests = BTreeMap::from([("storage".to_owned(), Quantity(format!("{storage}Gi")))]);
    PersistentVolumeClaim {
        metadata: metadata(name),
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            resources: Some(VolumeResourceRequirements {
                requests: Some(requests),
                ..VolumeResourceRequirements::default()
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}

pub(crate) fn requested(claim: &PersistentVolumeClaim) -> Option<&str> {
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    Some(&requests.get("storage")?.0)
}

pub(crate) fn deployment(name: impl Into<String>, image: &str, size: i32) -> Deployment {
    let name = name.into();
    let labels = BTreeMap::from([("app".to_owned(), name.clone())]);
    Deployment {
        metadata: metadata(name),
        spec: DeploymentSpec {
            replicas: Some(size),
            selector: LabelSelector {
                match_labels: Some(labels.clone()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    ..ObjectMeta::default()
                }),
                spec: Some(PodSpec {
                    containers: vec![Container {
                        name: "main".to_owned(),
                        image: Some(image.to_owned()),
                        ..Container::default()
                    }],
                    ..PodSpec::default()
                }),
            },
            ..DeploymentSpec::default()
        },
        ..Deployment::default()
    }
}

/// Returns `true` if all replicas of the current generation are available.
pub(crate) fn is_available(deployment: &Deployment) -> bool {
    let Some(status) = &deployment.status else {
        return false;
    };
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let is_current = status.observed_generation >= deployment.metadata.generation;
    let counts = [status.updated_replicas, status.available_replicas];
    is_current && counts.iter().all(|count| count.unwrap_or_default() >= wanted)
}

pub(crate) fn service(name: impl Into<String>) -> Service {
    let name = name.into();
    Service {
        metadata: metadata(name.clone()),
        spec: Some(ServiceSpec {
            selector: Some(BTreeMap::from([("app".to_owned(), name)])),
            ports: Some(vec![ServicePort {
                port: 80,
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// Returns a role identified by labels, since a ClusterRole can't have a namespaced owner.
pub(crate) fn cluster_role(owner: &impl Object) -> ClusterRole {
    let mut role = ClusterRole {
        metadata: metadata(format!("{}.{}", namespace(owner), owner.name_any())),
        ..ClusterRole::default()
    };
    let labels = [(OWNER, owner.name_any()), (NAMESPACE, namespace(owner))];
    let labels = labels.map(|(label, value)| (label.to_owned(), value));
    role.metadata.labels = Some(labels.into());
    role
}

/// Label with the namespace of the owner.
const NAMESPACE: &str = "simulated.example.com/namespace";

/// Finds the owner of a cluster-scoped object by its labels.
pub(crate) fn labelled_owner<K: Object>(object: &impl Object) -> Vec<ObjectRef<K>> {
    let label = |label| object.labels().get(label);
    let owner = label(OWNER).zip(label(NAMESPACE));
    owner
        .map(|(name, namespace)| ObjectRef::new(name).within(namespace))
        .into_iter()
        .collect()
}

/// Creates an object without checking whether it exists, and without adding it to the caches.
pub(crate) async fn create<K: Object + Serialize, S>(
    ctx: &Ctx<S>,
    owner: &(impl Object + Serialize),
    mut child: K,
) -> Result<K> {
    set_controller_reference(owner, &mut child)?;
    let api: Api<K> = ctx.api(owner);
    Ok(api.create(&PostParams::default(), &child).await?)
}

/// Applies an object without checking its owner.
pub(crate) async fn force<K: Object + Serialize, S>(
    ctx: &Ctx<S>,
    owner: &impl Object,
    child: K,
) -> Result<K> {
    let api: Api<K> = ctx.api(owner);
    let params = PatchParams::apply(ctx.controller()).force();
    Ok(api
        .patch(&child.name_any(), &params, &Patch::Apply(&child))
        .await?)
}

/// Returns `false` if the object doesn't exist.
pub(crate) async fn delete_named<K: Object, S>(
    ctx: &Ctx<S>,
    owner: &impl Object,
    name: &str,
) -> Result<bool, kube::Error> {
    let api: Api<K> = ctx.api(owner);
    match api.delete(name, &DeleteParams::background()).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Deletes an object from the cache, which may already be gone.
pub(crate) async fn delete_cached<K: Object + Serialize, S>(
    ctx: &Ctx<S>,
    namespace: &str,
    name: &str,
) -> Result<()> {
    if let Some(found) = ctx.cached::<K>()?.named(namespace, name) {
        ctx.delete(&*found).await?;
    }
    Ok(())
}
