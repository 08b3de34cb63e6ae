use kube::CustomResource;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, rbuilder::CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "x.io", version = "v1", kind = "Mug", namespaced)]
pub struct CupSpec {}
