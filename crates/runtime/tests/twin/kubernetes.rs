//! Types of Kubernetes: those whose JSON differs from their fields, and those from the catalogue.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ByteString;
use k8s_openapi::api::batch::v1 as batchv1;
use k8s_openapi::api::core::v1::*;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{JSON, JSONSchemaProps};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as metav1;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// Workloads.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "twin.example.com",
    version = "v1",
    kind = "Workload",
    plural = "workloads",
    namespaced
)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpec {
    /// The Pods.
    pub template: PodTemplateSpec,
    pub job: Option<batchv1::JobTemplateSpec>,
    pub parts: Parts,
    pub bytes: Bytes,
    pub schemas: Schemas,
}

/// Parts of Pods.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Parts {
    pub container: Container,
    #[kube(list_type = "map", list_map_keys = ["name"])]
    pub sidecars: Vec<Container>,
    /// In words of its own.
    pub resources: Option<ResourceRequirements>,
    pub probe: Option<Probe>,
    pub volumes: Option<Vec<Volume>>,
    pub mounts: BTreeMap<String, VolumeMount>,
    pub claim: PersistentVolumeClaimSpec,
    pub claims: Vec<PersistentVolumeClaim>,
    pub affinity: Option<Affinity>,
    pub tolerations: Vec<Toleration>,
    pub env: Vec<EnvVar>,
    pub env_from: Vec<EnvFromSource>,
    pub ports: Vec<ServicePort>,
    pub security: Option<SecurityContext>,
    pub selector: Option<metav1::LabelSelector>,
    pub conditions: Vec<metav1::Condition>,
    pub reference: TypedLocalObjectReference,
    pub owner: metav1::OwnerReference,
    pub strategy: k8s_openapi::api::apps::v1::DeploymentStrategy,
    pub policy: rbuilder_k8s::api::networking::v1::NetworkPolicySpec,
    pub rules: Vec<k8s_openapi::api::rbac::v1::PolicyRule>,
    pub metrics: Vec<k8s_openapi::api::autoscaling::v2::MetricSpec>,
    pub budget: k8s_openapi::api::policy::v1::PodDisruptionBudgetSpec,
    #[serde(flatten)]
    pub handler: LifecycleHandler,
}

/// The crate under a name of this module's own.
pub mod rbuilder_k8s {
    pub use k8s_openapi::api;
}

/// Bytes, which are text on the wire.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Bytes {
    /// One.
    pub one: ByteString,
    pub maybe: Option<ByteString>,
    pub list: Vec<k8s_openapi::ByteString>,
    pub map: BTreeMap<String, ::k8s_openapi::ByteString>,
    pub deep: Option<BTreeMap<String, Vec<ByteString>>>,
    pub own: own::ByteString,
    #[kube(schema_type = "ByteString")]
    pub named: String,
    pub keys: BTreeSet<own::ByteString>,
}

/// A type of the same name.
pub mod own {
    use super::*;

    /// Not bytes.
    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct ByteString {
        pub value: i32,
    }
}

/// Schemas and any JSON.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Schemas {
    pub json: JSON,
    pub schema: JSONSchemaProps,
    pub fields: Option<metav1::FieldsV1>,
}
