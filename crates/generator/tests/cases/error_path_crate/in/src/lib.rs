#[derive(kube::CustomResource, rbuilder::CrdSchema)]
#[kube(group = "x.example.com", version = "v1", kind = "Thing")]
pub struct ThingSpec {
    pub unused: api::Unused,
    pub unparsable: api::unparsable::Thing,
    pub missing: api::missing::Thing,
    pub other_crate: registry::Thing,
    pub kind: api::OtherSpec,
    pub gone: api::Gone,
}
