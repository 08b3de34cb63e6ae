use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(validation(enum = [1, "two"]))]
    value: i32,
}

fn main() {}
