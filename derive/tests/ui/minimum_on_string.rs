use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
pub struct Spec {
    #[kube(validation(minimum = 1))]
    pub name: String,
}

fn main() {}
