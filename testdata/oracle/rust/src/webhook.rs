//! Webhooks: what the marker leaves open follows from the handler's type.

use k8s_openapi::api::core::v1::Pod;
use rbuilder::webhook;

use super::named::Full;

/// The arguments that most have.
pub mod basic {
    use super::*;

    #[webhook(
        validating,
        name = "validation.full.oracle.example.com",
        match_policy = "Equivalent",
        admission_review_versions = "v1;v1beta1",
        timeout_seconds = 10
    )]
    pub fn validate(_: &Full) {}

    #[webhook(
        validating,
        name = "again.full.oracle.example.com",
        path = "/validate-again",
        failure_policy = "ignore",
        match_policy = "exact",
        side_effects = "NoneOnDryRun",
        operations = "create;update;delete;connect"
    )]
    pub fn again(_: &Full) {}

    #[webhook(mutating, match_policy = "Equivalent", reinvocation_policy = "IfNeeded")]
    pub fn default(_: &mut Full) {}

    #[webhook(
        mutating,
        groups = "core",
        operations = "create",
        reinvocation_policy = "Never"
    )]
    pub fn pods(_: &mut Pod) {}

    #[webhook(
        validating,
        name = "any.oracle.example.com",
        path = "/any",
        groups = "*",
        versions = "*",
        resources = "*/*",
        operations = "*"
    )]
    pub fn any() {}
}

/// They answer elsewhere.
pub mod served {
    use super::*;

    #[webhook(
        validating,
        name = "url.oracle.example.com",
        url = "https://anothersomewhere:9443/validate-full"
    )]
    pub fn url(_: &Full) {}

    #[webhook(
        validating,
        name = "service.oracle.example.com",
        path = "/served",
        service_name = "service",
        service_namespace = "namespace",
        service_port = 1234
    )]
    pub fn service(_: &Full) {}

    #[webhook(
        mutating,
        name = "other.oracle.example.com",
        path = "/mutate-served",
        service_name = "other"
    )]
    pub fn other(_: &mut Full) {}
}

/// They are asked about some objects only.
pub mod selectors {
    use super::*;

    #[webhook(
        validating,
        name = "namespaces.oracle.example.com",
        path = "/namespaces",
        operations = "create",
        namespace_selector(match_labels = { "webhook-enabled": "true" })
    )]
    pub fn namespaces(_: &Full) {}

    #[webhook(
        mutating,
        name = "objects.oracle.example.com",
        path = "/objects",
        operations = "create",
        object_selector(
            match_labels = { "managed": "yes" },
            match_expression(key = "env", operator = "NotIn", values = ["prod", "stage"]),
            match_expression(key = "app", operator = "Exists")
        )
    )]
    pub fn objects(_: &mut Full) {}

    #[webhook(
        validating,
        name = "conditions.oracle.example.com",
        path = "/conditions",
        operations = "create",
        scope = "Cluster",
        match_condition(name = "not-kube", expression = "!object.metadata.name.startsWith('kube-')")
    )]
    pub fn conditions(_: &Full) {}
}

/// Their names put them in order, wherever they stand.
pub mod ordered {
    use super::*;

    #[webhook(
        validating,
        name = "order-b.oracle.example.com",
        path = "/b",
        operations = "create"
    )]
    #[webhook(
        validating,
        name = "order-d.oracle.example.com",
        path = "/d",
        operations = "create"
    )]
    pub fn first(_: &Full) {}

    #[webhook(
        validating,
        name = "order-c.oracle.example.com",
        path = "/c",
        operations = "create"
    )]
    #[webhook(
        validating,
        name = "order-a.oracle.example.com",
        path = "/a",
        operations = "create"
    )]
    pub fn second(_: &Full) {}
}

/// They stand in configurations with names of their own.
pub mod named {
    use super::*;

    #[webhook(
        validating,
        configuration = "bar",
        name = "in-bar.oracle.example.com",
        path = "/in-bar",
        operations = "create"
    )]
    pub fn in_bar(_: &Full) {}

    #[webhook(
        mutating,
        configuration = "foo",
        name = "in-foo.oracle.example.com",
        path = "/in-foo",
        operations = "create"
    )]
    pub fn in_foo(_: &mut Full) {}
}
