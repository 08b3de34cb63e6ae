//! A version that is going, without a word about it.

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// VersionedResourceSpec is that of v1alpha2.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1alpha2",
    kind = "VersionedResource",
    namespaced,
    shortname = "vr",
    storage = false,
    deprecated,
    doc = "VersionedResource has versions."
)]
pub struct VersionedResourceSpec {
    pub older: String,
}
