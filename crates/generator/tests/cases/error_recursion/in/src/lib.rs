use rbuilder::CrdSchema;
#[derive(kube::CustomResource, CrdSchema)]
#[kube(group = "g.example.com", version = "v1", kind = "Foo")]
pub struct FooSpec {
    pub a: A,
    pub grow: Grow<i32>,
}
#[derive(CrdSchema)]
pub struct A {
    pub b: Option<Box<B>>,
}
#[derive(CrdSchema)]
pub struct B {
    pub list: Vec<A>,
}
#[derive(CrdSchema)]
pub struct Grow<T> {
    pub next: Option<Box<Grow<Vec<T>>>>,
}
