use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(list_type = "sett")]
    value: Vec<String>,
}

fn main() {}
