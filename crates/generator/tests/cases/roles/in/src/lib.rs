//! Markers on every kind of item; roles by name and namespace.
use rbuilder::rbac;

#[rbac(groups = "", resources = "pods", verbs = "get")]
#[rbac(groups = "core", resources = ["pods"], verbs = ["list"])]
#[rbac(groups = "", resources = "secrets", verbs = "get", namespace = "infra")]
#[rbac(groups = "", resources = "configmaps", verbs = "get", namespace = "infra", role_name = "reader")]
#[rbac(groups = "apps", resources = "deployments", verbs = "get", role_name = "reader")]
pub async fn reconcile() {}

pub struct Reconciler;

#[rbac(urls = "/metrics", verbs = "get")]
impl Reconciler {
    #[rbac(groups = "apps", resources = "deployments", resource_names = "one", verbs = "update")]
    pub fn method(&self) {}
}

#[rbac(groups = "apps", resources = "statefulsets", verbs = "watch")]
pub mod inner {
    pub trait Trait {
        #[rbuilder::rbac(groups = "batch", resources = "jobs", verbs = "create;delete")]
        fn provided(&self) {}
    }
}
