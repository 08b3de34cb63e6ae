use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// The first version. It is old, and its description is cut after this sentence. This one is too long.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "parts.k8s.io",
    version = "v1",
    kind = "Widget",
    namespaced,
    storage = false,
    deprecated = "use parts.k8s.io/v2",
    category = "all",
    shortname = "wd",
    status = "WidgetStatus",
    annotation("api-approved.kubernetes.io", "https://github.com/kubernetes/kubernetes/pull/1"),
    label("tier", "front")
)]
#[crd(max_description_length = 90, annotation("example.com/owner", "The widgets' team"), label("crd", "yes"))]
pub struct WidgetSpec {
    /// Where the widgets come from, as a template of which the metadata is kept in this field but in no other one.
    #[kube(embedded_object_meta)]
    pub template: Template,
    #[kube(max_description_length = 0)]
    pub quiet: Quiet,
    #[kube(embedded_object_meta)]
    pub meta: ObjectMeta,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Template {
    pub metadata: ObjectMeta,
    pub value: i32,
}

/// Dropped.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Quiet {
    /// Dropped too.
    pub value: i32,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct WidgetStatus {
    pub ready: bool,
}
