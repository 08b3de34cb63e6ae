//! A version that is gone.

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// VersionedResourceSpec is that of v1alpha1.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1alpha1",
    kind = "VersionedResource",
    namespaced,
    shortname = "vr",
    storage = false,
    served = false,
    doc = "VersionedResource has versions."
)]
pub struct VersionedResourceSpec {
    pub oldest: String,
}
