use kube::CustomResource;
use rbuilder::CrdSchema;

#[derive(CustomResource, CrdSchema)]
#[kube(group = "tea.example.com", version = "v1", kind = "Cup", namespaced)]
pub struct CupSpec {
    pub size: i32,
}
#[derive(CustomResource, CrdSchema)]
#[kube(group = "tea.example.com", version = "v1beta1", kind = "Cup", namespaced, storage = false)]
pub struct CupBetaSpec {
    pub size: i32,
}
#[derive(CustomResource, CrdSchema)]
#[kube(group = "tea.example.com", version = "v1", kind = "Pot", namespaced)]
pub struct PotSpec {
    pub size: i32,
}
