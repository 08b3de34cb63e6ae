use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(validation(pattern = "(?=x)"))]
    value: String,
}

fn main() {}
