//! Fields of one struct among those of another.
use rbuilder::CrdSchema;
use std::collections::BTreeMap;

#[derive(kube::CustomResource, CrdSchema)]
#[kube(group = "g.example.com", version = "v1", kind = "Flat")]
pub struct FlatSpec {
    pub own: String,
    #[serde(flatten)]
    pub always: Always,
    #[serde(flatten)]
    pub sometimes: Option<Sometimes>,
    pub open: Open,
}

#[derive(CrdSchema)]
pub struct Always {
    /// Required wherever it is.
    pub always: i32,
}

#[derive(CrdSchema)]
pub struct Sometimes {
    pub sometimes: i32,
    pub perhaps: Option<bool>,
}

#[derive(CrdSchema)]
pub struct Open {
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}
