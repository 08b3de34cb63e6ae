//! The ConfigMapGenerator API in version v1 of the example.com group.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// ConfigMapGeneratorSpec defines the desired state of ConfigMapGenerator.
#[derive(CustomResource, JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "ConfigMapGenerator",
    doc = "ConfigMapGenerator writes its content to a ConfigMap of the same name.",
    shortname = "cmg",
    namespaced
)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapGeneratorSpec {
    /// content is the value to write.
    #[schemars(length(min = 1, max = 1024))]
    pub content: String,

    /// key is the key of the ConfigMap to write to.
    #[serde(default = "default_key")]
    #[schemars(pattern(r"^[-._a-zA-Z0-9]+$"))]
    pub key: String,
}

fn default_key() -> String {
    "content".to_owned()
}
