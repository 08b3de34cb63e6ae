//! A version that is going.

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

use super::common;

/// VersionedResourceSpec is that of v1beta1.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1beta1",
    kind = "VersionedResource",
    namespaced,
    shortname = "vr",
    storage = false,
    deprecated = "oracle.example.com/v1beta1 VersionedResource is going; use v1",
    doc = "VersionedResource has versions."
)]
pub struct VersionedResourceSpec {
    /// Shared is in every version.
    pub shared: common::Shared,
}
