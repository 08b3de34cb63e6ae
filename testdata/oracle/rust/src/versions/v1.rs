//! The version that is stored.

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

use super::common;

/// VersionedResourceSpec is that of v1.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "VersionedResource",
    namespaced,
    shortname = "vr",
    status = "VersionedResourceStatus",
    doc = "VersionedResource has versions.",
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"),
    selectable = ".spec.word"
)]
pub struct VersionedResourceSpec {
    pub size: i32,
    pub word: String,
    /// Shared is in every version.
    #[kube(struct_type = "atomic")]
    pub shared: common::Shared,
}

/// VersionedResourceStatus is that of v1.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct VersionedResourceStatus {
    pub size: i32,
}
