//! Which fields may be absent, and which may be null.

use std::collections::BTreeMap;

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// PresenceSpec has a field for each way to say it.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Presence",
    namespaced,
    status = "PresenceStatus",
    doc = "Presence decides which fields may be absent."
)]
#[serde(rename_all = "camelCase")]
pub struct PresenceSpec {
    /// Plain is required: nothing says otherwise.
    pub plain: String,
    /// Omitted is left out when it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub omitted: String,
    /// Zeroed is left out when it is zero.
    #[serde(default)]
    pub zeroed: i32,
    /// Pointer points nowhere, perhaps.
    pub pointer: Option<String>,
    /// SliceOmitted is left out when it is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slice_omitted: Vec<String>,
    /// MapOmitted is left out when it is empty.
    #[serde(default)]
    pub map_omitted: BTreeMap<String, String>,
    /// StructOmitted is left out when it points nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub struct_omitted: Option<Box<Inner>>,
    /// This tests that explicitly optional kubebuilder fields are not required.
    #[kube(optional)]
    #[serde(default)]
    pub explicitly_optional_kubebuilder: String,
    /// This tests that explicitly optional kubernetes fields are not required.
    #[serde(default = "word")]
    pub explicitly_optional_kubernetes: String,
    /// This tests that explicitly optional k8s fields are not required.
    #[crd(optional)]
    #[serde(default)]
    pub explicitly_optional_k8s: String,
    /// This tests that explicitly required kubebuilder fields are required.
    #[kube(required)]
    pub explicitly_required_kubebuilder: Option<String>,
    /// This tests that explicitly required kubernetes fields are required.
    #[kube(required)]
    #[serde(default)]
    pub explicitly_required_kubernetes: String,
    /// This tests that explicitly required k8s fields are required.
    #[crd(required, validation(min_length = 1))]
    pub explicitly_required_k8s: Option<String>,
    /// CanBeNull keeps a null.
    #[kube(nullable, required)]
    pub can_be_null: Option<String>,
    /// CanBeNullOrAbsent may be both.
    #[kube(nullable)]
    pub can_be_null_or_absent: Option<String>,
    /// Relaxed has fields that may all be absent.
    pub relaxed: Option<Relaxed>,
    /// Defaulted is required and has a default all the same.
    #[kube(default = "here")]
    pub defaulted: String,
    /// DefaultedOptional may be absent, and is then filled in.
    #[kube(default = "there")]
    pub defaulted_optional: Option<String>,
}

fn word() -> String {
    "word".to_owned()
}

/// Inner is a struct in a field.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Inner {
    pub a: i32,
    pub b: Option<i32>,
}

/// Relaxed has fields that may all be absent.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct Relaxed {
    pub first: String,
    pub second: i32,
    #[kube(required)]
    pub third: bool,
}

/// PresenceStatus says what was seen.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct PresenceStatus {
    /// ObservedGeneration is the generation that was seen.
    pub observed_generation: Option<i64>,
    /// Seen is required in a status that is there.
    pub seen: bool,
}
