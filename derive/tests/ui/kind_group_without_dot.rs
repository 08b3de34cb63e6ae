use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
#[kube(group = "example", version = "v1", kind = "Foo")]
struct FooSpec {
    a: Option<String>,
    b: Option<String>,
}

fn main() {}
