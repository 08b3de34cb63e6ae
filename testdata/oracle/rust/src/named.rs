//! Names of every sort, and what a kind can say beside its schema.

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as metav1;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// FullSpec is what is wanted.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Full",
    plural = "fulls",
    singular = "fullone",
    shortname = "fu",
    shortname = "ful",
    category = "all",
    category = "oracles",
    status = "FullStatus",
    doc = "Full says all that can be said about a kind.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn = r#"{"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "description": "How many are wanted", "format": "int32", "priority": 1}"#,
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Weight", type_ = "number", json_path = ".spec.weight"),
    printcolumn(name = "Paused", type_ = "boolean", json_path = ".spec.paused", priority = 0),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    selectable = ".spec.image",
    selectable = ".spec.replicas"
)]
#[crd(
    annotation("oracle.example.com/about", "everything"),
    annotation("oracle.example.com/empty", ""),
    label("oracle.example.com/part", "kind")
)]
pub struct FullSpec {
    pub replicas: i32,
    pub image: String,
    pub weight: f64,
    pub paused: Option<bool>,
}

/// FullStatus is what is there.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct FullStatus {
    #[serde(default)]
    pub replicas: i32,
    #[serde(default)]
    pub selector: String,
    #[kube(list_type = "map", list_map_keys = ["type"])]
    #[serde(default)]
    pub conditions: Vec<metav1::Condition>,
}

/// ScaledSpec is what is wanted.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Scaled",
    namespaced,
    status = "ScaledStatus",
    doc = "Scaled has a scale without a selector.",
    scale(spec_replicas_path = ".spec.size", status_replicas_path = ".status.size")
)]
pub struct ScaledSpec {
    pub size: i32,
}

/// ScaledStatus is what is there.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct ScaledStatus {
    pub size: i32,
}

/// ScaledSpec is what is wanted.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "TestQuota",
    namespaced,
    doc = "TestQuota has a plural by rule."
)]
pub struct TestQuotaSpec {
    pub size: i32,
}

/// ScaledSpec is what is wanted.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Proxy",
    namespaced,
    doc = "Proxy has a plural by rule."
)]
pub struct ProxySpec {
    pub size: i32,
}

/// ScaledSpec is what is wanted.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Gateway",
    namespaced,
    doc = "Gateway has a plural by rule."
)]
pub struct GatewaySpec {
    pub size: i32,
}

/// ScaledSpec is what is wanted.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Ingress",
    namespaced,
    doc = "Ingress has a plural by rule."
)]
pub struct IngressSpec {
    pub size: i32,
}

/// ScaledSpec is what is wanted.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "HTTPRoute",
    namespaced,
    doc = "HTTPRoute has a plural by rule."
)]
pub struct HttpRouteSpec {
    pub size: i32,
}

/// Bare has no spec.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Bare",
    namespaced,
    no_spec
)]
pub struct BareFields {
    /// Word stands beside the metadata.
    pub word: String,
    pub number: Option<i64>,
}
