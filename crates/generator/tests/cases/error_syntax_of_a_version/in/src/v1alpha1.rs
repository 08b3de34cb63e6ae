#[derive(kube::CustomResource, rbuilder::CrdSchema, serde::Serialize, serde::Deserialize)]
#[kube(group = "x.io", version = "v1alpha1", kind = "Cup", plural = "cups", namespaced)]
pub struct CupSpec
    pub size: i32,
}
