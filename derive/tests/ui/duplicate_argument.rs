use rbuilder_derive::{CrdSchema, rbac, webhook};

#[derive(CrdSchema)]
#[kube(group = "example.com", version = "v1", kind = "Foo", plural = "foos", plural = "fooes")]
#[kube(printcolumn(name = "A", name = "B", type_ = "string", json_path = ".spec.a"))]
#[crd(conversion(path = "/a", path = "/b"), conversion)]
struct FooSpec {
    #[kube(title = "a")]
    #[crd(title = "b", validation(max_length = 1), validation(max_length = 2))]
    a: Option<String>,
    #[kube(cel(rule = "self != ''", rule = "self != 'a'"))]
    #[kube(external_docs(url = "https://a", url = "https://b"))]
    b: Option<String>,
}

#[rbac(groups = "", resources = "pods", verbs = "get", verbs = "list")]
fn rule() {}

#[webhook(validating, path = "/a", path = "/b")]
fn argument(_: &Memcached) {}

#[webhook(validating, match_condition(name = "a", name = "b", expression = "true"))]
fn condition(_: &Memcached) {}

#[webhook(validating, object_selector(match_expression(key = "a", key = "b", operator = "Exists")))]
fn selector(_: &Memcached) {}

struct Memcached;

fn main() {}
