use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(embedded_object_meta = "false")]
    template: String,
}

fn main() {}
