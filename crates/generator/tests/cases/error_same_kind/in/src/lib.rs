mod a {
use rbuilder::CrdSchema;
#[derive(kube::CustomResource, CrdSchema)]
#[kube(group = "g.example.com", version = "v1", kind = "Foo")]
pub struct FooSpec {
    pub a: i32,
}
}
mod b {
use rbuilder::CrdSchema;
#[derive(kube::CustomResource, CrdSchema)]
#[kube(group = "g.example.com", version = "v1", kind = "Foo")]
pub struct FooSpec {
    pub b: i32,
}
}
mod c {
use rbuilder::CrdSchema;
#[derive(kube::CustomResource, CrdSchema)]
#[kube(group = "g.example.com", version = "v1", kind = "Bar", plural = "foos")]
pub struct BarSpec {

}
}
