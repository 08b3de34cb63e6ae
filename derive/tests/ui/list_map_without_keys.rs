use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(list_type = "map")]
    value: Vec<String>,
}

fn main() {}
