use api::*;

#[derive(kube::CustomResource, rbuilder::CrdSchema)]
#[kube(group = "x.example.com", version = "v1", kind = "Thing")]
pub struct ThingSpec {
    pub used: Used,
    pub linked: api::linked::Linked,
}
