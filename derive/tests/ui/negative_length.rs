use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(validation(max_length = -1))]
    value: String,
}

fn main() {}
