#[derive(kube::CustomResource, rbuilder::CrdSchema, serde::Serialize, serde::Deserialize)]
#[kube(group = "x.io", version = "v1alpha1", kid = "Cup", plural = "cups", namespacd)]
pub struct CupSpec {
    pub size: i32,
}
