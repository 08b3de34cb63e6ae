//! Kubernetes' larger types.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::batch::v1 as batchv1;
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::api::networking::v1 as networkingv1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as metav1;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// WorkloadSpec runs things in Pods.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Workload",
    plural = "workloads",
    namespaced,
    doc = "Workload runs things in Pods."
)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpec {
    /// JobTemplate is the object that describes the Job.
    pub job_template: batchv1::JobTemplateSpec,
    pub template: corev1::PodTemplateSpec,
    /// Sidecars run beside.
    #[kube(list_type = "map", list_map_keys = ["name"])]
    pub sidecars: Vec<corev1::Container>,
    pub claims: Vec<corev1::PersistentVolumeClaim>,
    pub resources: Option<corev1::ResourceRequirements>,
    pub probe: corev1::Probe,
    pub volumes: BTreeMap<String, corev1::Volume>,
    /// Strategy is how Pods are replaced.
    pub strategy: Option<appsv1::DeploymentStrategy>,
    pub policy: networkingv1::NetworkPolicySpec,
    pub owner: metav1::OwnerReference,
}
