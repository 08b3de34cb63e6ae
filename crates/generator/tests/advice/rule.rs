//! A kind with a CEL rule as advised for kube 1.0 and newer.

#[derive(
    kube::CustomResource, schemars::JsonSchema, serde::Serialize, serde::Deserialize, Clone, Debug,
)]
#[kube(
    group = "g.example.com",
    version = "v1",
    kind = "Test",
    validation = "self.spec.a != ''",
    annotation("api-approved.kubernetes.io", "unapproved, experimental")
)]
pub struct TestSpec {
    pub a: String,
}
