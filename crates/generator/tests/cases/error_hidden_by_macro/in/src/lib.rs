macro_rules! kind {
    ($name:ident) => {
        #[derive(kube::CustomResource, rbuilder::CrdSchema)]
        #[kube(group = "g.example.com", version = "v1", kind = "Hidden")]
        pub struct $name {}
    };
}
kind!(HiddenSpec);

wrap! {
    #[rbac(groups = "", resources = "pods", verbs = "get")]
    fn f() {}
}

fn local() {
    #[derive(kube::CustomResource)]
    struct Local;

    #[rbuilder::rbac(groups = "", resources = "pods", verbs = "get")]
    fn inner() {}
}

#[test]
fn a_test() {
    #[derive(kube::CustomResource)]
    struct Local;
}

#[versioned(v1, v2)]
#[derive(rbuilder::CrdSchema)]
pub struct Moved {}
