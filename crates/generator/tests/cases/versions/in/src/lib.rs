//! Two versions of one kind; a library and a binary that share the file.
pub mod v1 {
    use rbuilder::CrdSchema;
    #[derive(kube::CustomResource, CrdSchema)]
    #[kube(group = "g.example.com", version = "v1", kind = "Thing", namespaced)]
    pub struct ThingSpec {
        pub size: i32,
    }
}
pub mod v1beta1 {
    use rbuilder::CrdSchema;
    #[derive(kube::CustomResource, CrdSchema)]
    #[kube(group = "g.example.com", version = "v1beta1", kind = "Thing", namespaced, storage = false, deprecated = "use v1")]
    pub struct ThingSpec {
        pub count: i32,
    }
}
