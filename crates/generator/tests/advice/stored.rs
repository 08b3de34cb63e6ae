//! Two versions of a kind with a storage version as advised for kube 0.98 and newer.

pub mod v1 {
    #[derive(
        kube::CustomResource, schemars::JsonSchema, serde::Serialize, serde::Deserialize, Clone, Debug,
    )]
    #[kube(group = "g.example.com", version = "v1", kind = "Test", storage = false)]
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
