use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
#[kube(group = "example.com", version = "v1", kind = "Foo", deprecated = "one\ntwo")]
struct FooSpec {
    a: Option<String>,
    b: Option<String>,
}

fn main() {}
