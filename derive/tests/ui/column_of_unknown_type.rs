use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Foo",
    printcolumn(name = "A", type_ = "text", json_path = ".spec.a")
)]
struct FooSpec {
    a: Option<String>,
    b: Option<String>,
}

fn main() {}
