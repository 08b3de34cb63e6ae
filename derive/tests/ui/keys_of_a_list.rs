use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(keys(validation(max_length = 3)))]
    value: Vec<String>,
}

fn main() {}
