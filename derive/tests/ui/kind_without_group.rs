use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
#[kube(version = "v1", kind = "Foo")]
struct FooSpec {
    a: Option<String>,
    b: Option<String>,
}

fn main() {}
