use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(cel(rule = "self > 0", reason = "FieldValueWrong"))]
    value: i32,
}

fn main() {}
