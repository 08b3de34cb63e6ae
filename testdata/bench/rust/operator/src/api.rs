// SPDX-License-Identifier: Apache-2.0

//! `Memcached` of `bench.example.com/v1alpha1`. testdata/bench/go/api contains the same types in
//! Go.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// MemcachedSpec defines the desired state of Memcached.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "bench.example.com",
    version = "v1alpha1",
    kind = "Memcached",
    plural = "memcacheds",
    namespaced,
    status = "MemcachedStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedSpec {
    /// The number of instances.
    pub size: i32,
    /// What each instance runs.
    pub image: String,
    /// Where it listens.
    pub container_port: i32,
    /// How much it may hold.
    pub memory_megabytes: i32,
    /// Arguments of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// On which nodes it may run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
}

/// MemcachedStatus defines the observed state of Memcached.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedStatus {
    /// What is known about the instances, one condition per type.
    #[kube(list_type = "map", list_map_keys = ["type"])]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
