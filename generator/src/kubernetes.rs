//! The kinds of Kubernetes itself: their groups and resources, by the Rust paths of `k8s-openapi`.

use rbuilder_syntax::names;

/// A kind as a webhook or a rule names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// `""` for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
}

/// The kinds of one API group.
pub(crate) struct Group {
    /// The module of `k8s_openapi` above the versions.
    module: &'static str,
    /// The group's name.
    pub(crate) name: &'static str,
    /// Every kind that some version of the group has.
    kinds: &'static [&'static str],
}

/// Kubernetes' groups. Kinds that only hold a part of an object, such as `Scale`, are subresources and not here.
pub(crate) const GROUPS: &[Group] = &[
    Group {
        module: "api::core",
        name: "",
        kinds: &[
            "Binding",
            "ComponentStatus",
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    },
    Group {
        module: "api::admissionregistration",
        name: "admissionregistration.k8s.io",
        kinds: &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    },
    Group {
        module: "apiextensions_apiserver::pkg::apis::apiextensions",
        name: "apiextensions.k8s.io",
        kinds: &["CustomResourceDefinition"],
    },
    Group {
        module: "kube_aggregator::pkg::apis::apiregistration",
        name: "apiregistration.k8s.io",
        kinds: &["APIService"],
    },
    Group {
        module: "api::apiserverinternal",
        name: "internal.apiserver.k8s.io",
        kinds: &["StorageVersion"],
    },
    Group {
        module: "api::apps",
        name: "apps",
        kinds: &[
            "ControllerRevision",
            "DaemonSet",
            "Deployment",
            "ReplicaSet",
            "StatefulSet",
        ],
    },
    Group {
        module: "api::authentication",
        name: "authentication.k8s.io",
        kinds: &["SelfSubjectReview", "TokenReview"],
    },
    Group {
        module: "api::authorization",
        name: "authorization.k8s.io",
        kinds: &[
            "LocalSubjectAccessReview",
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        ],
    },
    Group {
        module: "api::autoscaling",
        name: "autoscaling",
        kinds: &["HorizontalPodAutoscaler"],
    },
    Group {
        module: "api::batch",
        name: "batch",
        kinds: &["CronJob", "Job"],
    },
    Group {
        module: "api::certificates",
        name: "certificates.k8s.io",
        kinds: &[
            "CertificateSigningRequest",
            "ClusterTrustBundle",
            "PodCertificateRequest",
        ],
    },
    Group {
        module: "api::coordination",
        name: "coordination.k8s.io",
        kinds: &["Lease", "LeaseCandidate"],
    },
    Group {
        module: "api::discovery",
        name: "discovery.k8s.io",
        kinds: &["EndpointSlice"],
    },
    Group {
        module: "api::events",
        name: "events.k8s.io",
        kinds: &["Event"],
    },
    Group {
        module: "api::flowcontrol",
        name: "flowcontrol.apiserver.k8s.io",
        kinds: &["FlowSchema", "PriorityLevelConfiguration"],
    },
    Group {
        module: "api::lifecycle",
        name: "lifecycle.k8s.io",
        kinds: &["Eviction", "EvictionRequest"],
    },
    Group {
        module: "api::networking",
        name: "networking.k8s.io",
        kinds: &[
            "IPAddress",
            "Ingress",
            "IngressClass",
            "NetworkPolicy",
            "ServiceCIDR",
        ],
    },
    Group {
        module: "api::node",
        name: "node.k8s.io",
        kinds: &["RuntimeClass"],
    },
    Group {
        module: "api::policy",
        name: "policy",
        kinds: &["PodDisruptionBudget"],
    },
    Group {
        module: "api::rbac",
        name: "rbac.authorization.k8s.io",
        kinds: &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    },
    Group {
        module: "api::resource",
        name: "resource.k8s.io",
        kinds: &[
            "DeviceClass",
            "DeviceTaintRule",
            "ResourceClaim",
            "ResourceClaimTemplate",
            "ResourcePoolStatusRequest",
            "ResourceSlice",
        ],
    },
    Group {
        module: "api::scheduling",
        name: "scheduling.k8s.io",
        kinds: &["CompositePodGroup", "PodGroup", "PriorityClass", "Workload"],
    },
    Group {
        module: "api::storage",
        name: "storage.k8s.io",
        kinds: &[
            "CSIDriver",
            "CSINode",
            "CSIStorageCapacity",
            "StorageClass",
            "VolumeAttachment",
            "VolumeAttributesClass",
        ],
    },
    Group {
        module: "api::storagemigration",
        name: "storagemigration.k8s.io",
        kinds: &["StorageVersionMigration"],
    },
];

/// The kind behind a canonical path, such as `k8s_openapi::api::apps::v1::Deployment`.
pub(crate) fn kind(path: &str) -> Option<Kind> {
    let rest = path.strip_prefix("k8s_openapi::")?;
    let (rest, kind) = rest.rsplit_once("::")?;
    let (module, version) = rest.rsplit_once("::")?;
    let group = GROUPS.iter().find(|group| group.module == module)?;
    group.kinds.contains(&kind).then(|| Kind {
        group: group.name.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural(kind),
    })
}

fn plural(kind: &str) -> String {
    match kind {
        "Endpoints" => "endpoints".to_owned(),
        _ => names::plural(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_path() {
        let cases = [
            ("k8s_openapi::api::core::v1::Pod", Some(("", "v1", "pods"))),
            (
                "k8s_openapi::api::core::v1::Endpoints",
                Some(("", "v1", "endpoints")),
            ),
            (
                "k8s_openapi::api::networking::v1::NetworkPolicy",
                Some(("networking.k8s.io", "v1", "networkpolicies")),
            ),
            (
                "k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition",
                Some(("apiextensions.k8s.io", "v1", "customresourcedefinitions")),
            ),
            ("k8s_openapi::api::core::v1::PodSpec", None),
            ("kube::core::DynamicObject", None),
        ];
        for (path, expected) in cases {
            let found = kind(path);
            let found = found
                .as_ref()
                .map(|kind| (kind.group.as_str(), kind.version.as_str(), kind.plural.as_str()));
            assert_eq!(found, expected, "{path}");
        }
    }
}
