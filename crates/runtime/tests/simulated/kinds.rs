//! Custom kinds used in the corpus. All of their fields are read by operators, because a field
//! without any effect is reported.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt, ResourceExt};
use rbuilder::conditions::{self, Condition};
use rbuilder::{CrdSchema, Ctx, Object, Result, WithStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// AppSpec declares a number of instances.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "simulated.example.com",
    version = "v1",
    kind = "App",
    namespaced,
    status = "Status"
)]
pub(crate) struct AppSpec {
    /// size is the number of instances to run.
    #[kube(validation(minimum = 1, maximum = 5), default = 1)]
    pub(crate) size: i32,
}

/// SiteSpec declares something with an optional part.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "simulated.example.com",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "Status"
)]
pub(crate) struct SiteSpec {
    /// image is the image to run.
    #[kube(validation(pattern = "^[a-z]{1,8}$"))]
    pub(crate) image: String,
    /// expose adds the optional part.
    #[kube(default = false)]
    pub(crate) expose: bool,
}

/// WebSpec declares a Deployment.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "simulated.example.com",
    version = "v1",
    kind = "Web",
    namespaced,
    status = "Status"
)]
pub(crate) struct WebSpec {
    /// image is the image to run.
    #[kube(validation(pattern = "^[a-z]{1,8}$"))]
    pub(crate) image: String,
    /// size is the number of instances to run.
    #[kube(validation(minimum = 1, maximum = 5), default = 1)]
    pub(crate) size: i32,
}

/// StoreSpec declares storage, which cannot shrink.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "simulated.example.com",
    version = "v1",
    kind = "Store",
    namespaced,
    status = "Status"
)]
pub(crate) struct StoreSpec {
    /// storage is the size of the volume, in GiB.
    #[kube(
        validation(minimum = 1, maximum = 5),
        cel(rule = "self >= oldSelf", message = "storage cannot shrink"),
        default = 1
    )]
    pub(crate) storage: i32,
}

/// LabelledSpec declares something with a name of the user's.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "simulated.example.com",
    version = "v1",
    kind = "Labelled",
    plural = "labelled",
    namespaced,
    status = "Status"
)]
pub(crate) struct LabelledSpec {
    /// label is a name of the user's choice.
    #[kube(validation(pattern = "^[a-z]{1,8}$"))]
    pub(crate) label: String,
}

/// NoteSpec declares a text with an optional title.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "simulated.example.com",
    version = "v1",
    kind = "Note",
    namespaced,
    status = "Status"
)]
pub(crate) struct NoteSpec {
    /// text is the text.
    #[kube(validation(pattern = "^[a-z]{1,8}$"))]
    pub(crate) text: String,
    /// title is the title of the text.
    #[kube(validation(pattern = "^[a-z]{1,8}$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
}

/// LimitSpec declares two numbers that are easily confused.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "simulated.example.com",
    version = "v1",
    kind = "Limit",
    namespaced,
    status = "Status"
)]
pub(crate) struct LimitSpec {
    /// cpu is the number of processors.
    #[kube(validation(minimum = 1, maximum = 5), default = 1)]
    pub(crate) cpu: i32,
    /// memory is the memory in GiB.
    #[kube(validation(minimum = 1, maximum = 5), default = 1)]
    pub(crate) memory: i32,
}

/// LegacySpec declares a size under its name of today and that of the first release.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "simulated.example.com",
    version = "v1",
    kind = "Legacy",
    plural = "legacies",
    namespaced,
    status = "Status"
)]
pub(crate) struct LegacySpec {
    /// size is the number of instances to run.
    #[kube(validation(minimum = 1, maximum = 5))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<i32>,
    /// replicas is the name of `size` in the first release.
    #[kube(validation(minimum = 1, maximum = 5))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replicas: Option<i32>,
}

/// MachineSpec is the resource of an external system, whose API is played by the API server: it
/// survives restarts of the operator, and its answers can be lost.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "cloud.example.com", version = "v1", kind = "Machine")]
pub(crate) struct MachineSpec {
    /// size is the number of processors.
    #[kube(validation(minimum = 1, maximum = 5), default = 1)]
    pub(crate) size: i32,
}

/// The status of all kinds.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// phase is what the operator does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) phase: Option<String>,
    /// id is the name of something that the operator has made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// count is a number that the operator remembers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<i32>,
    /// observedGeneration is the generation that the status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) observed_generation: Option<i64>,
    /// conditions represent the current state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[kube(list_type = "map", list_map_keys = ["type"])]
    pub(crate) conditions: Vec<Condition>,
}

/// An object of any of these kinds.
pub(crate) trait Reported: Object + WithStatus<Status = Status> {
    /// Returns the status, which is empty if the object has none.
    fn reported(&self) -> Status;
}

impl<K: Object + WithStatus<Status = Status> + kube::core::object::HasStatus<Status = Status>> Reported
    for K
{
    fn reported(&self) -> Status {
        self.status().cloned().unwrap_or_default()
    }
}

pub(crate) async fn report<K: Reported, S>(
    ctx: &Ctx<S>,
    object: &K,
    change: impl FnOnce(&mut Status),
) -> Result<K> {
    let mut status = object.reported();
    change(&mut status);
    ctx.apply_status(object, status).await
}

pub(crate) async fn report_phase<K: Reported, S>(ctx: &Ctx<S>, object: &K, phase: &str) -> Result<K> {
    report(ctx, object, |status| status.phase = Some(phase.to_owned())).await
}

/// Reports in the status whether the object's current generation is ready.
pub(crate) async fn report_ready<K: Reported, S>(ctx: &Ctx<S>, object: &K, is_ready: bool) -> Result<K> {
    let reason = if is_ready { "Running" } else { "Progressing" };
    let ready = conditions::new("Ready", is_ready, reason).observed(object);
    report(ctx, object, |status| {
        conditions::set(&mut status.conditions, ready);
        status.observed_generation = object.meta().generation;
    })
    .await
}

/// Returns an object named `sample`.
pub(crate) fn declared<K: Object>(spec: Value) -> Value {
    json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": { "name": "sample", "namespace": "default" },
        "spec": spec,
    })
}

/// Returns a ConfigMap that belongs to the user.
pub(crate) fn declared_map(name: &str, text: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default" },
        "data": { "text": text },
    })
}

pub(crate) fn crds<K: CustomResourceExt>() -> Vec<CustomResourceDefinition> {
    vec![K::crd()]
}

pub(crate) fn namespace(object: &impl Object) -> String {
    object.namespace().unwrap_or_default()
}

/// Returns a name for something in an external system, which has no namespaces.
pub(crate) fn tag(object: &impl Object) -> String {
    format!("{}.{}", namespace(object), object.name_any())
}
