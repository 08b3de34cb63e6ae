use rbuilder::rbac;
#[rbac(resources = "pods", verbs = "get")]
#[rbac(groups = "apps", resources = "deployments", verbs = "wacth")]
#[rbac(urls = "/metrics", verbs = "get", namespace = "x")]
fn reconcile() {}
