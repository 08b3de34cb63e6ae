use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
pub struct Spec {
    #[kube(validation(minimun = 1))]
    pub size: i32,
}

fn main() {}
