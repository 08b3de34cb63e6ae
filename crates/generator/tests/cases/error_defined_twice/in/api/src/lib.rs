use kube::CustomResource;
use rbuilder::CrdSchema;

#[derive(CustomResource, CrdSchema)]
#[kube(group = "tea.example.com", version = "v1", kind = "Cup")]
pub struct CupSpec {
    pub label: String,
}
#[derive(CustomResource, CrdSchema)]
#[kube(group = "tea.example.com", version = "v2", kind = "Pot", namespaced, storage = false)]
pub struct PotSpec {
    pub size: i32,
}
