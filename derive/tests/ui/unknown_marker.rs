use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
pub struct Spec {
    #[kube(immutible)]
    pub size: i32,
}

fn main() {}
