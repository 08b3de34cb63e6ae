use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(optional, required)]
    value: i32,
}

fn main() {}
