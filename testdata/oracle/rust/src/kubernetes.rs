//! Types of Kubernetes itself.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as metav1;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// KubernetesSpec uses types of Kubernetes itself.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Kubernetes",
    plural = "kubernetes",
    namespaced,
    status = "KubernetesStatus",
    doc = "Kubernetes uses types of Kubernetes itself."
)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesSpec {
    /// Quantity is how much.
    pub quantity: Quantity,
    pub maybe_quantity: Option<Quantity>,
    pub quantities: BTreeMap<String, Quantity>,
    pub time: metav1::Time,
    /// MaybeTime is a moment.
    pub maybe_time: Option<metav1::Time>,
    pub micro_time: metav1::MicroTime,
    pub duration: kube::core::Duration,
    pub maybe_duration: Option<kube::core::Duration>,
    pub metadata: metav1::ObjectMeta,
    pub selector: metav1::LabelSelector,
    /// MaybeSelector selects.
    pub maybe_selector: Option<metav1::LabelSelector>,
    pub requirement: metav1::LabelSelectorRequirement,
    pub pull_secrets: Vec<corev1::LocalObjectReference>,
    pub secret: corev1::SecretKeySelector,
    pub config: Option<corev1::ConfigMapKeySelector>,
}

/// KubernetesStatus says what was seen.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesStatus {
    #[kube(list_type = "map", list_map_keys = ["type"])]
    #[serde(default)]
    pub conditions: Vec<metav1::Condition>,
    /// Active are the runs.
    #[serde(default)]
    pub active: Vec<String>,
    /// LastScheduleTime is when.
    pub last_schedule_time: Option<metav1::Time>,
    pub last_schedule_micro_time: Option<metav1::MicroTime>,
}
