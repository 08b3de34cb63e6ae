use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
#[kube(immutable)]
struct FooSpec {
    a: Option<String>,
    b: Option<String>,
}

fn main() {}
