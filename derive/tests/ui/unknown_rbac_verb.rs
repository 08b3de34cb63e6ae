use rbuilder_derive::rbac;

#[rbac(groups = "apps", resources = "deployments", verbs = "get;wacth")]
fn reconcile() {}

fn main() {
    reconcile();
}
