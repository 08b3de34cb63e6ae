//! What scaffolds need to know about built-in kinds.

use rbuilder_generator::find_kubernetes_kind;

use crate::project::Resource;

/// A built-in kind whose objects are owned by objects of another kind.
pub(crate) struct ManagedKind {
    pub(crate) path: &'static str,
    pub(crate) group: &'static str,
    /// E.g. `pods`.
    pub(crate) plural: &'static str,
}

const PODS: ManagedKind = ManagedKind {
    path: "k8s_openapi::api::core::v1::Pod",
    group: "",
    plural: "pods",
};

/// The kind of the objects that Kubernetes creates on behalf of a kind. For example, a controller
/// for ReplicaSets mostly deals with Pods.
pub(crate) fn managed_kind(resource: &Resource) -> Option<ManagedKind> {
    match (resource.core, resource.path.as_str()) {
        (true, "k8s_openapi::api::apps::v1::Deployment") => Some(ManagedKind {
            path: "k8s_openapi::api::apps::v1::ReplicaSet",
            group: "apps",
            plural: "replicasets",
        }),
        (true, "k8s_openapi::api::batch::v1::CronJob") => Some(ManagedKind {
            path: "k8s_openapi::api::batch::v1::Job",
            group: "batch",
            plural: "jobs",
        }),
        (
            true,
            "k8s_openapi::api::apps::v1::ReplicaSet"
            | "k8s_openapi::api::apps::v1::StatefulSet"
            | "k8s_openapi::api::apps::v1::DaemonSet"
            | "k8s_openapi::api::batch::v1::Job"
            | "k8s_openapi::api::core::v1::ReplicationController",
        ) => Some(PODS),
        _ => None,
    }
}

/// Whether a fake API server serves a version of a kind by default. It does so for versions
/// preferred by Kubernetes.
pub(crate) fn is_served_by_fake(resource: &Resource) -> bool {
    let Resource {
        group, version, kind, ..
    } = resource;
    resource.core && find_kubernetes_kind(None, group, version, kind).is_some_and(|found| found.is_preferred)
}
