use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
#[kube(group = "shop.example.com", version = "v1", kind = "Cup", selectable = ".spec.colour")]
struct CupSpec {
    color: String,
}

fn main() {}
