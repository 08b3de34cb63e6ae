use rbuilder_derive::rbac;

#[rbac(resources = "pods", verbs = "get")]
fn reconcile() {}

fn main() {
    reconcile();
}
