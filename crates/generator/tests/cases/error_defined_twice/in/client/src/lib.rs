use kube::CustomResource;
use rbuilder::CrdSchema;

#[derive(CustomResource, CrdSchema)]
#[kube(group = "tea.example.com", version = "v1", kind = "Cup", namespaced)]
pub struct CupData {
    pub size: i32,
}
