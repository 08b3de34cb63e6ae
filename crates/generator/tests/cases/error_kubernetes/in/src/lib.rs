//! Types that k8s-openapi does not have.

use k8s_openapi::List;
use k8s_openapi::api::core::v1::*;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// Shop is a shop.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "g.example.com", version = "v1", kind = "Shop", namespaced)]
pub struct ShopSpec {
    pub newer: k8s_openapi::api::core::v1::FileKeySelector,
    pub unknown: k8s_openapi::api::core::v1::Pood,
    pub not_in_the_glob: Pood,
    pub generic: List<Pod>,
}
