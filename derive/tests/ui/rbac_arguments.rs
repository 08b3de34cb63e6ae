use rbuilder_derive::rbac;

#[rbac(groups = "apps;", resources = "deployments", verbs = "get")]
fn stray_separator() {}

#[rbac(groups = "apps/v1", resources = "deployments", verbs = "get")]
fn group_with_version() {}

#[rbac(groups = "", resources = "pods/*", verbs = "get")]
fn any_subresource() {}

#[rbac(groups = "", resources = "pods", resource_names = "one", verbs = "deletecollection")]
fn create_by_name() {}

#[rbac(groups = "", resources = "pods", urls = "/metrics", verbs = "get")]
fn resources_and_urls() {}

#[rbac(urls = "/metrics", verbs = "get", namespace = "one")]
fn urls_in_a_role() {}

#[rbac(groups = "", resources = "pods", verbs = "levitate")]
fn custom_verb() {}

#[rbac(groups = "", resources = "pods", verbs = "get", custom_verbs = "levitate")]
fn declared_custom_verb() {}

fn main() {}
