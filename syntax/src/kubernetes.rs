//! The kinds of Kubernetes itself: their groups and resources, by the Rust paths of `k8s-openapi`.

use crate::{names, suggest};

/// A kind as a webhook or a rule names it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the words of the API
pub struct Kind {
    /// `""` for the core group.
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
}

/// The kinds of one API group.
struct Group {
    /// The module of `k8s_openapi` above the versions.
    module: &'static str,
    /// The group's name.
    name: &'static str,
    /// Every kind that some version of the group has.
    kinds: &'static [&'static str],
}

/// Kubernetes' groups. Kinds that only hold a part of an object, such as `Scale`, are subresources and not here.
const GROUPS: &[Group] = &[
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
pub fn kind(path: &str) -> Option<Kind> {
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

/// The canonical path of a kind that has this group, as people write it: `apps`, `core`, `networking` or
/// `networking.k8s.io`. Whether a version of Kubernetes has the kind in this version of the group is not looked at.
pub fn path(group: &str, version: &str, kind: &str) -> Option<String> {
    let is_meant = |known: &&Group| {
        let short = known.module.rsplit("::").next();
        known.name == group && !group.is_empty() || short == Some(group)
    };
    let group = GROUPS.iter().find(is_meant)?;
    let has = group.kinds.contains(&kind);
    has.then(|| format!("k8s_openapi::{}::{version}::{kind}", group.module))
}

/// What is most likely wrong with a rule about this resource of these groups: a word about it, and what to write.
///
/// Only what looks like a slip is told: the plural of another group, or nearly the plural of one of these. A resource
/// that is not known at all may be newer than this table.
pub(crate) fn slip(groups: &[String], resource: &str) -> Option<(String, String)> {
    let resource = resource.split('/').next().unwrap_or_default();
    let named: Option<Vec<&Group>> = groups.iter().map(|name| group(name)).collect();
    let named = named.filter(|named| !named.is_empty())?;
    let has = |group: &Group| group.kinds.iter().any(|kind| plural(kind) == resource);
    if resource == "*" || named.iter().any(|group| has(group)) {
        return None;
    }
    let of = match named[..] {
        [one] if one.name.is_empty() => "the core group has".to_owned(),
        [one] => format!("the group `{}` has", one.name),
        _ => "none of these groups has".to_owned(),
    };
    let no = if named.len() == 1 { "no" } else { "a" };
    let message = format!("{of} {no} resource `{resource}`");
    if let Some((_, plural)) = SHORT_NAMES.iter().find(|(short, _)| *short == resource) {
        return Some((
            message,
            format!("write `{plural}`: a role is about names in full"),
        ));
    }
    if let Some(home) = GROUPS.iter().find(|group| has(group)) {
        return Some((message, format!("write `groups = \"{}\"`", home.name)));
    }
    let plurals: Vec<String> = named
        .iter()
        .flat_map(|group| group.kinds)
        .map(|kind| plural(kind))
        .collect();
    let near = suggest::nearest(resource, plurals.iter().map(String::as_str))?;
    Some((message, format!("did you mean `{near}`?")))
}

/// The names that kubectl takes for resources in place of their plurals.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("cj", "cronjobs"),
    ("cm", "configmaps"),
    ("crd", "customresourcedefinitions"),
    ("crds", "customresourcedefinitions"),
    ("csr", "certificatesigningrequests"),
    ("deploy", "deployments"),
    ("ds", "daemonsets"),
    ("ep", "endpoints"),
    ("ev", "events"),
    ("hpa", "horizontalpodautoscalers"),
    ("ing", "ingresses"),
    ("limits", "limitranges"),
    ("netpol", "networkpolicies"),
    ("no", "nodes"),
    ("ns", "namespaces"),
    ("pc", "priorityclasses"),
    ("pdb", "poddisruptionbudgets"),
    ("po", "pods"),
    ("pv", "persistentvolumes"),
    ("pvc", "persistentvolumeclaims"),
    ("quota", "resourcequotas"),
    ("rc", "replicationcontrollers"),
    ("rs", "replicasets"),
    ("sa", "serviceaccounts"),
    ("sc", "storageclasses"),
    ("sts", "statefulsets"),
    ("svc", "services"),
];

fn group(name: &str) -> Option<&'static Group> {
    let name = if name == "core" { "" } else { name };
    GROUPS.iter().find(|group| group.name == name)
}

fn plural(kind: &str) -> String {
    match kind {
        "Endpoints" => "endpoints".to_owned(),
        _ => names::plural(&names::singular(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips() {
        let cases = [
            (&["apps"][..], "deployments", None),
            (&["apps"], "deployments/scale", None),
            (&["apps"], "*", None),
            (
                &["apps"],
                "deployment",
                Some("the group `apps` has no resource `deployment`, did you mean `deployments`?"),
            ),
            (
                &[""],
                "deployments/status",
                Some("the core group has no resource `deployments`, write `groups = \"apps\"`"),
            ),
            (
                &["core", "batch"],
                "leases",
                Some(
                    "none of these groups has a resource `leases`, write `groups = \"coordination.k8s.io\"`",
                ),
            ),
            (&["", "apps"], "deployments", None),
            (&["example.com"], "deployments", None),
            (&["apps", "*"], "pods", None),
            (&[], "pods", None),
            // Known to nobody here, and near to nothing.
            (&["certificates.k8s.io"], "signers", None),
            (&[""], "users", None),
            (&["authentication.k8s.io"], "userextras/scopes", None),
        ];
        for (groups, resource, expected) in cases {
            let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
            let said = slip(&groups, resource).map(|(message, help)| format!("{message}, {help}"));
            assert_eq!(said.as_deref(), expected, "{groups:?} {resource}");
        }
    }

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
