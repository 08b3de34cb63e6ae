use rbuilder_derive::rbac;

#[rbac(groups = "", resources = "pods", verbs = "get,list")]
fn commas() {}

#[rbac(groups = "", resources = "pods/", verbs = "get")]
fn slash() {}

#[rbac(groups = "", resources = "nodes", verbs = "get", namespace = "here")]
fn nodes_of_a_namespace() {}

#[rbac(urls = "/metrics", verbs = "list")]
fn list_a_url() {}

fn main() {}
