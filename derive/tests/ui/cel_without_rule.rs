use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(cel(message = "no rule"))]
    value: i32,
}

fn main() {}
