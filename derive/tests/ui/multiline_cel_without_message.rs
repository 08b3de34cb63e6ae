use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(cel(rule = "self > 0\n&& self < 9"))]
    value: i32,
}

fn main() {}
