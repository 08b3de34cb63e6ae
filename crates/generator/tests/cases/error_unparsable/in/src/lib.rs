mod broken;
use rbuilder::CrdSchema;
#[derive(kube::CustomResource, CrdSchema)]
#[kube(group = "g.example.com", version = "v1", kind = "Foo")]
pub struct FooSpec {
    #[kube(validation(minimun = 1))]
    pub size: i32,
}
