use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(minimum = 1)]
    value: i32,
}

fn main() {}
