use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(validation = rule_of(3))]
    value: i32,
}

fn main() {}
