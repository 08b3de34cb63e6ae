//! A kind whose fields are beside `metadata`.
use rbuilder::CrdSchema;

/// Holds data.
#[derive(kube::CustomResource, CrdSchema)]
#[kube(group = "g.example.com", version = "v1", kind = "Holder", plural = "holders", namespaced, no_spec)]
pub struct HolderSpec {
    pub data: Option<String>,
    pub size: i32,
}
