use rbuilder::CrdSchema;
#[derive(kube::CustomResource, CrdSchema)]
#[kube(group = "g.example.com", version = "v1", kind = "Foo")]
pub struct FooSpec {
    pub a: Nope,
    pub b: jiff::Timestamp2,
    pub c: std::thread::Thread,
    pub d: Plain,
    pub e: (i32, i32),
    pub f: dyn Fn(),
    pub g: Vec<Nope>,
}

use kube::*;
pub struct Plain;
