use rbuilder::CrdSchema;
#[derive(kube::CustomResource, CrdSchema)]
#[kube(group = "g.example.com", version = "v1", kind = "Foo", selectable = ".spec.nope", scale(spec_replicas_path = ".spec.size", status_replicas_path = ".status.nope"), status = "Status")]
pub struct FooSpec {
    pub size: String,
}
#[derive(CrdSchema)]
pub struct Status {}
