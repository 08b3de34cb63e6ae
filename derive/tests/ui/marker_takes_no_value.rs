use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(immutable = true)]
    value: i32,
}

fn main() {}
