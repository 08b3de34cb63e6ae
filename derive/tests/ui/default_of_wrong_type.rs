use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(default = "many")]
    value: i32,
}

fn main() {}
