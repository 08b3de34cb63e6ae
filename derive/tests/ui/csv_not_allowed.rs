use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
enum Mode {
    #[csv(display_name = "On")]
    On,
    Off,
}

#[derive(CrdSchema)]
#[kube(group = "example.com", version = "v1", kind = "Foo")]
#[csv]
struct FooSpec {
    #[csv]
    mode: Mode,
}

fn main() {}
