use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
pub struct Spec {
    #[kube(validation(minimum = 5, maximum = 1))]
    pub size: i32,
}

fn main() {}
