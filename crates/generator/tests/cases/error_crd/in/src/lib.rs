use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "parts.k8s.io", version = "v1", kind = "Unapproved", shortname = "un")]
pub struct UnapprovedSpec {
    pub value: i32,
}

#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "parts.k8s.io", version = "v1", kind = "Said", shortname = "un", annotation("api-approved.kubernetes.io", "yes"))]
pub struct SaidSpec {
    pub value: i32,
}

#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Twice", storage = false)]
#[crd(conversion)]
pub struct FirstSpec {
    pub value: i32,
}

#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v2", kind = "Twice")]
#[crd(conversion(path = "/other"))]
pub struct SecondSpec {
    pub value: i32,
}

#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Strange", label("tier", "not a label"), annotation("not a key", "x"))]
#[crd(conversion(strategy = "webhook", service_name = "Web", service_port = 99999, path = "convert"))]
#[crd(conversion(strategy = "None", path = "/convert"))]
pub struct StrangeSpec {
    pub value: i32,
}

#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "AbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghijAbcdefghij")]
#[crd(conversion(url = "http://example.com", path = "/convert", ca_bundle = "cert", review_versions = ["v2"], servce_name = "x"))]
pub struct LongSpec {
    pub value: i32,
}

#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Bare")]
#[crd(conversion(strategy = "None", path = "/convert"))]
pub struct BareSpec {
    #[kube(embedded_object_meta)]
    pub value: i32,
}
