#[derive(kube::CustomResource, rbuilder::CrdSchema, serde::Serialize, serde::Deserialize)]
#[kube(group = "x.io", version = "v1", kind = "Cup", plural = "cups", namespaced, storage = false)]
pub struct CupSpec {
    pub size: i32,
}
