use rbuilder_derive::{CrdSchema, rbac, webhook};

#[derive(CrdSchema)]
#[crd(allow(RB0360))]
struct Foo {
    #[kube(allow(rb0306))]
    value: i32,
    #[crd(allow(phone, reason = "none"))]
    phone: String,
    #[crd(allow(RB0306, RB0309, reason = "valid"))]
    valid: String,
}

#[rbac(allow(RB061))]
fn reconcile() {}

#[webhook(validating, allow())]
fn validate(_foo: &Foo) {}

fn main() {}
