//! Permissions asked for in every way.

use rbuilder::rbac;

/// Verbs of two resources stay apart.
#[rbac(groups = "batch.io", resources = "cronjobs", verbs = "get;watch;create")]
#[rbac(
    groups = "batch.io",
    resources = "cronjobs/status",
    verbs = "get;update;patch"
)]
pub fn apart() {}

/// What is said twice is written once.
#[rbac(groups = "batch;batch;batch", resources = "jobs/status", verbs = "watch")]
#[rbac(groups = "batch", resources = "jobs/status", verbs = "watch;watch")]
pub fn twice() {}

/// The order of a list says nothing.
#[rbac(groups = "batch;cron", resources = "jobs/status", verbs = "create;get")]
#[rbac(groups = ["cron", "batch"], resources = ["jobs/status"], verbs = ["get", "create"])]
pub fn order() {}

/// Names of objects set a rule apart.
#[rbac(
    groups = "batch.io",
    resources = "cronjobs",
    resource_names = "foo;bar;baz",
    verbs = "get;watch"
)]
pub fn names() {}

/// Verbs of one resource are joined.
#[rbac(groups = "dedup-verbs", resources = "some", verbs = "get;list")]
#[rbac(groups = "dedup-verbs", resources = "some", verbs = "get")]
#[rbac(groups = "dedup-verbs", resources = "some", verbs = "list")]
pub fn verbs() {}

/// Resources with the same verbs are joined.
#[rbac(groups = "dedup-resources", resources = "one", verbs = "create")]
#[rbac(groups = "dedup-resources", resources = "two", verbs = "create")]
#[rbac(groups = "dedup-resources", resources = "three", verbs = "create")]
pub fn resources() {}

/// Groups with the same resources and verbs are joined.
#[rbac(groups = "groups1", resources = "foo", verbs = "patch")]
#[rbac(groups = "groups2", resources = "foo", verbs = "patch")]
#[rbac(groups = "groups3", resources = "foo", verbs = "patch")]
pub fn groups() {}

/// All of it at once.
#[rbac(groups = "dedup-all", resources = "foo;bar", verbs = "get;list")]
#[rbac(groups = "dedup-all", resources = "foo", verbs = "get")]
#[rbac(groups = "dedup-all", resources = "bar", verbs = "list")]
#[rbac(groups = "dedup-all-other", resources = "foo;bar", verbs = "get;list")]
pub fn all() {}

/// A star is all verbs.
#[rbac(groups = "groups4", resources = "xyz", verbs = "get;update;patch")]
#[rbac(groups = "groups4", resources = "xyz", verbs = "*")]
pub fn star() {}

/// What differs stays apart.
#[rbac(groups = "not-dedup-resources", resources = "some", verbs = "get")]
#[rbac(groups = "not-dedup-resources", resources = "another", verbs = "list")]
#[rbac(groups = "not-dedup-groups1", resources = "some", verbs = "get")]
#[rbac(groups = "not-dedup-groups2", resources = "some", verbs = "list")]
pub fn different() {}

/// Addresses outside the resources.
#[rbac(urls = "/url-to-duplicate", verbs = "get")]
#[rbac(urls = "/another/url-to-duplicate", verbs = "get")]
pub fn urls() {}

/// The core group has two names.
#[rbac(groups = "core", resources = "deduplicate", verbs = "list")]
#[rbac(groups = "", resources = "me", verbs = "list")]
#[rbac(groups = ["core", "", "some-other"], resources = "me", verbs = "list;get")]
pub fn core() {}

/// Roles of namespaces.
#[rbac(groups = "wave", namespace = "zoo", resources = "jobs", verbs = "get")]
#[rbac(groups = "art", namespace = "zoo", resources = "jobs", verbs = "get")]
#[rbac(groups = "art", namespace = "park", resources = "jobs", verbs = "get")]
#[rbac(groups = "batch", namespace = "here", resources = "abc", verbs = "get")]
#[rbac(groups = "batch", namespace = "here", resources = "abc", verbs = "*")]
pub fn namespaces() {}

/// Roles with names.
#[rbac(
    groups = "apps",
    namespace = "infrastructure",
    role_name = "infra-deployment-manager",
    resources = "deployments",
    verbs = "get;list;watch;update;patch"
)]
#[rbac(
    groups = "apps",
    namespace = "infrastructure",
    role_name = "infra-deployment-manager",
    resources = "statefulsets",
    verbs = "get;list"
)]
#[rbac(
    groups = "",
    namespace = "users",
    role_name = "user-secrets-reader",
    resources = "secrets",
    verbs = "get"
)]
#[rbac(
    groups = "",
    namespace = "observability",
    resources = "pods",
    verbs = "get;list"
)]
#[rbac(
    groups = "apps",
    role_name = "second-role",
    resources = "daemonsets",
    verbs = "get"
)]
pub fn role_names() {}
