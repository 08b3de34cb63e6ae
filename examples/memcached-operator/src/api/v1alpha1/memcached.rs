// SPDX-License-Identifier: Apache-2.0

//! The Memcached API in version v1alpha1 of the cache.example.com group.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// MemcachedSpec defines the desired state of Memcached.
#[derive(CustomResource, CrdSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cache.example.com",
    version = "v1alpha1",
    kind = "Memcached",
    plural = "memcacheds",
    doc = "Memcached is the schema for the memcacheds API.",
    namespaced,
    status = "MemcachedStatus",
    shortname = "mc",
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedSpec {
    /// size is the number of memcached instances to run.
    #[kube(validation(minimum = 1, maximum = 3))]
    pub size: i32,
}

/// MemcachedStatus defines the observed state of Memcached.
#[derive(CrdSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
// No controller has seen a new object: without this, tools take it for one that is up to date.
#[crd(default = { "observedGeneration": -1 })]
#[serde(rename_all = "camelCase")]
pub struct MemcachedStatus {
    /// observedGeneration is the generation of the Memcached that the status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// conditions represent the current state of the Memcached resource.
    #[kube(list_type = "map", list_map_keys = ["type"])]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
