use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
#[kube(validation(one_of = { "required": ["value"] }))]
struct Foo {
    value: Option<String>,
}

fn main() {}
