use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
#[kube(validation(any_of = [{ "require": ["value"] }]))]
struct Foo {
    value: Option<String>,
}

fn main() {}
