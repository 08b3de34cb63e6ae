use rbuilder::CrdSchema;

mod beside;

#[derive(kube::CustomResource, CrdSchema)]
#[kube(group = "g.example.com", version = "v1", kind = "Included")]
pub struct IncludedSpec {
    pub part: self::beside::Part,
}

#[rbuilder::rbac(groups = "", resources = "pods", verbs = "get")]
fn f() {}
