use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
#[kube(at_most_one_of(a))]
struct FooSpec {
    a: Option<String>,
    b: Option<String>,
}

fn main() {}
