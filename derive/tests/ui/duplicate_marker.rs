use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(title = "a", title = "b")]
    value: i32,
}

fn main() {}
