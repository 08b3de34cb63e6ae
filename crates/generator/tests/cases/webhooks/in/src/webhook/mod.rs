use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::core::admission::{AdmissionRequest, AdmissionResponse};
use kube::core::DynamicObject;
use rbuilder::webhook;

use crate::api::{self, Memcached, ProxyObject, Shared};

pub struct Invalid;

#[webhook(mutating)]
pub fn default(memcached: &mut Memcached, _: &AdmissionRequest<DynamicObject>) {
    memcached.spec.size = 1;
}

#[webhook(validating, operations = "create;update;delete")]
pub fn validate(new: &Memcached, old: Option<&Memcached>, req: &AdmissionRequest<DynamicObject>) -> Result<(), Invalid> {
    Ok(())
}

/// The request comes first, and what it holds is an alias of an alias.
#[webhook(validating, name = "alias.memcached.example.com", path = "/validate-alias")]
pub async fn by_alias(request: Arc<State>, object: Option<api::Object>) -> Result<(), Invalid> {
    Ok(())
}

#[webhook(validating, name = "shared.memcached.example.com", path = "/validate-shared")]
pub async fn by_generic_alias(object: Shared<Memcached>) -> Result<(), Invalid> {
    Ok(())
}

#[webhook(validating, match_policy = "exact")]
pub async fn by_root_name(object: ProxyObject) {}

#[webhook(mutating, groups = "core", operations = ["create"], failure_policy = "ignore")]
pub fn pods(request: AdmissionRequest<Pod>) -> AdmissionResponse {
    todo!()
}

#[webhook(
    validating,
    operations = "*",
    scope = "Cluster",
    match_condition(name = "not-system", expression = "!object.metadata.name.startsWith('kube-')"),
    match_condition(name = "example.com/second", expression = "request.userInfo.username != 'a'"),
    namespace_selector(match_labels = { "tier": "b", "app": "a" }, match_expression(key = "x", operator = "Exists")),
    object_selector(match_expression(key = "env", operator = "NotIn", values = ["prod", "stage"])),
    timeout_seconds = 5,
    side_effects = "NoneOnDryRun",
    admission_review_versions = "v1;v1beta1",
)]
fn namespaces(new: &k8s_openapi::api::core::v1::Namespace) {}

/// Nothing is left open, so the parameters may be anything.
#[webhook(
    mutating,
    groups = ["", "core", "apps"],
    versions = "*",
    resources = ["*/*"],
    name = "all.example.com",
    url = "https://hooks.example.com:8443/all",
    reinvocation_policy = "ifneeded",
    configuration = "everything"
)]
fn anything<T>(object: T) {}

pub struct Defaulter;

impl Defaulter {
    #[webhook(mutating, name = "method.example.com", path = "/method", service_name = "other", service_namespace = "infra", service_port = 9443)]
    pub async fn default(&self, memcached: &mut Memcached) {}
}

pub trait Validate {
    #[webhook(validating, name = "trait.example.com", path = "/trait")]
    fn validate(&self, namespace: &Namespace);
}

impl Memcached {
    #[rbuilder::webhook(validating, name = "self.example.com", path = "/self")]
    pub fn validate(self: Arc<Self>) {}

    #[cfg(feature = "absent")]
    #[webhook(validating, name = "absent.example.com")]
    pub fn absent(&self) {}

    #[cfg_attr(unix, webhook(validating, name = "second.example.com", path = "/second", operations = "delete"))]
    #[cfg_attr(unix, webhook(validating, name = "third.example.com", path = "/second", operations = "delete"))]
    pub fn several(&self) {}
}
