/// What stands in an `impl` can be included too.
#[rbuilder::rbac(groups = "apps", resources = "deployments", verbs = "list")]
fn reconcile(&self) {}
