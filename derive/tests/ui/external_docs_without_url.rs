use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(external_docs(description = "More"))]
    value: i32,
}

fn main() {}
