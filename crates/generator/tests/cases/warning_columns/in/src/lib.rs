use rbuilder::CrdSchema;
#[derive(kube::CustomResource, CrdSchema)]
#[kube(group = "g.example.com", version = "v1", kind = "Foo", printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"), printcolumn(name = "Nope", type_ = "string", json_path = ".spec.nope"))]
pub struct FooSpec {
    pub size: String,
}
