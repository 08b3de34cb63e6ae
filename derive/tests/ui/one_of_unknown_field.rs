use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
#[kube(exactly_one_of(a, c))]
struct FooSpec {
    a: Option<String>,
    b: Option<String>,
}

fn main() {}
