use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
#[kube(group = "example.com", version = "v1", kind = "Foo", status = "FooSpec")]
#[kube(scale(
    spec_replicas_path = ".spec.a",
    status_replicas_path = ".status.a",
    label_selector_path = "selector"
))]
struct FooSpec {
    a: Option<i32>,
}

fn main() {}
