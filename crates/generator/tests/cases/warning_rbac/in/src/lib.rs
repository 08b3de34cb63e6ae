//! Rules that the API server takes and that most likely say something else than was meant.
use rbuilder::rbac;

#[rbac(groups = "", resources = "deployments", verbs = "get")]
#[rbac(groups = "apps", resources = "deployment;statefulsets/scale", verbs = "get")]
#[rbac(groups = "core;batch", resources = "leases", verbs = "get")]
#[rbac(groups = "example.com", resources = "deployments", verbs = "get")]
fn reconcile() {}
