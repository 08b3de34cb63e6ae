use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(title = "a" default = 1)]
    value: i32,
}

fn main() {}
