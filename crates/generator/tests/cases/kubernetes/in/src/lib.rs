//! Kubernetes' own types, by every way to their names.

use kube::CustomResource;
use rbuilder::CrdSchema;
use rbuilder::k8s_openapi::api::core::v1 as corev1;
use serde::{Deserialize, Serialize};

mod prelude {
    pub use k8s_openapi::api::core::v1::*;
    pub use k8s_openapi::apimachinery::pkg::apis::*;
}

use prelude::*;

/// Shop is a shop.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "g.example.com", version = "v1", kind = "Shop", namespaced)]
#[serde(rename_all = "camelCase")]
pub struct ShopSpec {
    /// By the module's name.
    pub secret: corev1::SecretKeySelector,
    /// By a glob over a glob.
    pub config: Option<ConfigMapKeySelector>,
    /// By a module that a glob brings in.
    pub selector: meta::v1::LabelSelector,
    /// By the full path, in a list.
    #[kube(list_type = "map", list_map_keys = ["containerPort", "protocol"])]
    pub ports: Vec<k8s_openapi::api::core::v1::ContainerPort>,
    // No words of its own: the type's are taken.
    pub resources: ResourceRequirements,
    /// Bytes.
    pub bytes: k8s_openapi::ByteString,
}
