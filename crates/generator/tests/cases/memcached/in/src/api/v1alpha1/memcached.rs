use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// MemcachedSpec defines the desired state of Memcached.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "cache.example.com",
    version = "v1alpha1",
    kind = "Memcached",
    plural = "memcacheds",
    namespaced,
    status = "MemcachedStatus",
    shortname = "mc",
    category = "all",
    doc = "Memcached is the Schema for the memcacheds API.",
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.readyReplicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedSpec {
    /// Number of instances to run.
    ///
    /// More are not useful for a cache.
    #[kube(validation(minimum = 1, maximum = 5), default = 1)]
    pub size: i32,

    /// Port the container listens on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[kube(validation(minimum = 1, maximum = 65535))]
    pub container_port: Option<i32>,

    /// How items are evicted.
    #[serde(default)]
    pub eviction: Eviction,

    /// Labels that every Pod gets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_labels: BTreeMap<String, String>,

    /// Volumes by name.
    #[serde(default)]
    #[kube(list_type = "map", list_map_keys = ["name"])]
    pub volumes: Vec<Volume>,

    #[serde(skip)]
    pub cache: u128,
}

/// How memcached makes room.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub enum Eviction {
    /// The least recently used items go first.
    #[default]
    Lru,
    #[serde(rename = "off")]
    Never,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Name of the volume.
    #[kube(validation(min_length = 1, max_length = 63, pattern = "^[a-z]+$"))]
    pub name: String,
    pub size_in_mib: u32,
}

/// MemcachedStatus defines the observed state of Memcached.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedStatus {
    /// What is true of the Memcached now.
    #[serde(default)]
    #[kube(list_type = "map", list_map_keys = ["type"])]
    pub conditions: Vec<Condition>,
    pub ready_replicas: Option<i32>,
    /// Selects the Pods, for the autoscaler.
    pub selector: Option<String>,
}
