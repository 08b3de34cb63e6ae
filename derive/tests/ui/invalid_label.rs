use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Foo",
    label("tier", "not a label")
)]
struct FooSpec {
    a: Option<String>,
    b: Option<String>,
}

fn main() {}
