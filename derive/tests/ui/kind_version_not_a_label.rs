use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
#[kube(group = "example.com", version = "V1", kind = "Foo")]
struct FooSpec {
    a: Option<String>,
    b: Option<String>,
}

fn main() {}
