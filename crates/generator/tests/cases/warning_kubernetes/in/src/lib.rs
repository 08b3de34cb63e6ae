//! Nothing says which Kubernetes the types are of. Of those that are the same in all, nobody need know.

use k8s_openapi::api::core::v1::{LocalObjectReference, Toleration};
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// Shop is a shop.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "g.example.com", version = "v1", kind = "Shop", namespaced)]
pub struct ShopSpec {
    pub same: LocalObjectReference,
    pub differs: Toleration,
}
