//! Like `stored.rs`, for kube before 0.98, whose derive has no `storage`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub mod v1 {
    #[derive(
        kube::CustomResource, schemars::JsonSchema, serde::Serialize, serde::Deserialize, Clone, Debug,
    )]
    #[kube(group = "g.example.com", version = "v1", kind = "Test")]
    pub struct TestSpec {
        pub a: String,
    }
}

pub mod v2 {
    #[derive(
        kube::CustomResource, schemars::JsonSchema, serde::Serialize, serde::Deserialize, Clone, Debug,
    )]
    #[kube(group = "g.example.com", version = "v2", kind = "Test")]
    pub struct TestSpec {
        pub a: String,
    }
}

pub fn definition() -> CustomResourceDefinition {
    kube::core::crd::merge_crds(vec![v1::Test::crd(), v2::Test::crd()], "v1").unwrap()
}
