use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
#[crd(exactly_one_of(alpha, bta))]
pub struct Spec {
    pub alpha: Option<i32>,
    #[kube(default = "many")]
    pub beta: Option<i32>,
}

fn main() {}
