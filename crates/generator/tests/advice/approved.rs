//! A kind with an approval annotation as advised for kube 0.97 and newer.

#[derive(
    kube::CustomResource, schemars::JsonSchema, serde::Serialize, serde::Deserialize, Clone, Debug,
)]
#[kube(
    group = "lab.k8s.io",
    version = "v1",
    kind = "Sample",
    annotation("api-approved.kubernetes.io", "https://github.com/example/api/pull/1")
)]
pub struct SampleSpec {
    pub a: String,
}
