use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(schema_type = "not a type")]
    value: i32,
}

fn main() {}
