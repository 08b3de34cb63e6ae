//! The resources of Kubernetes itself: their scope, their subresources and the verbs of these.

use crate::suggest;

/// A resource as kube-apiserver's discovery describes it.
#[derive(Debug)]
pub struct Resource {
    group: &'static str,
    plural: &'static str,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// Names of subresources, with the verbs after a `:` where they are not those of `status`.
    subresources: &'static str,
}

/// The subresources of a resource that can only be created, such as a review.
const CREATE_ONLY: &str = "create-only";

/// The verbs of `status`, `scale` and most other subresources.
const STATUS_VERBS: &str = "get,patch,update";

/// Subresources that only authorization knows, by plural: kubelet's and those of the signers of certificates.
const VIRTUAL: &[(&str, &str)] = &[
    ("nodes", "log metrics stats spec checkpoint configz healthz pods"),
    (
        "certificatesigningrequests",
        "nodeclient selfnodeclient selfnodeserver",
    ),
    ("resourceclaims", "binding driver"),
];

/// The API groups of [`RESOURCES`] without the core group; then one that is newer, and one that old projects still name.
const GROUPS: &[&str] = &[
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
    "lifecycle.k8s.io",
    "extensions",
];

const fn row(
    group: &'static str,
    plural: &'static str,
    is_namespaced: bool,
    subresources: &'static str,
) -> Resource {
    Resource {
        group,
        plural,
        is_namespaced,
        subresources,
    }
}

/// Every resource of Kubernetes, from `/api` and `/apis` of kube-apiserver 1.36.3 with all APIs on.
#[rustfmt::skip]
const RESOURCES: &[Resource] = &[
    row("", "bindings", true, "create-only"),
    row("", "componentstatuses", false, ""),
    row("", "configmaps", true, ""),
    row("", "endpoints", true, ""),
    row("", "events", true, ""),
    row("", "limitranges", true, ""),
    row("", "namespaces", false, "finalize:update status"),
    row("", "nodes", false, "proxy:create,delete,get,patch,update status"),
    row("", "persistentvolumeclaims", true, "status"),
    row("", "persistentvolumes", false, "status"),
    row("", "pods", true, "attach:create,get binding:create ephemeralcontainers eviction:create exec:create,get log:get portforward:create,get proxy:create,delete,get,patch,update resize status"),
    row("", "podtemplates", true, ""),
    row("", "replicationcontrollers", true, "scale status"),
    row("", "resourcequotas", true, "status"),
    row("", "secrets", true, ""),
    row("", "serviceaccounts", true, "token:create"),
    row("", "services", true, "proxy:create,delete,get,patch,update status"),
    row("admissionregistration.k8s.io", "mutatingadmissionpolicies", false, ""),
    row("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", false, ""),
    row("admissionregistration.k8s.io", "mutatingwebhookconfigurations", false, ""),
    row("admissionregistration.k8s.io", "validatingadmissionpolicies", false, "status"),
    row("admissionregistration.k8s.io", "validatingadmissionpolicybindings", false, ""),
    row("admissionregistration.k8s.io", "validatingwebhookconfigurations", false, ""),
    row("apiextensions.k8s.io", "customresourcedefinitions", false, "status"),
    row("apiregistration.k8s.io", "apiservices", false, "status"),
    row("apps", "controllerrevisions", true, ""),
    row("apps", "daemonsets", true, "status"),
    row("apps", "deployments", true, "scale status"),
    row("apps", "replicasets", true, "scale status"),
    row("apps", "statefulsets", true, "scale status"),
    row("authentication.k8s.io", "selfsubjectreviews", false, "create-only"),
    row("authentication.k8s.io", "tokenreviews", false, "create-only"),
    row("authorization.k8s.io", "localsubjectaccessreviews", true, "create-only"),
    row("authorization.k8s.io", "selfsubjectaccessreviews", false, "create-only"),
    row("authorization.k8s.io", "selfsubjectrulesreviews", false, "create-only"),
    row("authorization.k8s.io", "subjectaccessreviews", false, "create-only"),
    row("autoscaling", "horizontalpodautoscalers", true, "status"),
    row("batch", "cronjobs", true, "status"),
    row("batch", "jobs", true, "status"),
    row("certificates.k8s.io", "certificatesigningrequests", false, "approval status"),
    row("certificates.k8s.io", "clustertrustbundles", false, ""),
    row("certificates.k8s.io", "podcertificaterequests", true, "status"),
    row("coordination.k8s.io", "leasecandidates", true, ""),
    row("coordination.k8s.io", "leases", true, ""),
    row("discovery.k8s.io", "endpointslices", true, ""),
    row("events.k8s.io", "events", true, ""),
    row("flowcontrol.apiserver.k8s.io", "flowschemas", false, "status"),
    row("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", false, "status"),
    row("internal.apiserver.k8s.io", "storageversions", false, "status"),
    row("networking.k8s.io", "ingressclasses", false, ""),
    row("networking.k8s.io", "ingresses", true, "status"),
    row("networking.k8s.io", "ipaddresses", false, ""),
    row("networking.k8s.io", "networkpolicies", true, ""),
    row("networking.k8s.io", "servicecidrs", false, "status"),
    row("node.k8s.io", "runtimeclasses", false, ""),
    row("policy", "poddisruptionbudgets", true, "status"),
    row("rbac.authorization.k8s.io", "clusterrolebindings", false, ""),
    row("rbac.authorization.k8s.io", "clusterroles", false, ""),
    row("rbac.authorization.k8s.io", "rolebindings", true, ""),
    row("rbac.authorization.k8s.io", "roles", true, ""),
    row("resource.k8s.io", "deviceclasses", false, ""),
    row("resource.k8s.io", "devicetaintrules", false, "status"),
    row("resource.k8s.io", "resourceclaims", true, "status"),
    row("resource.k8s.io", "resourceclaimtemplates", true, ""),
    row("resource.k8s.io", "resourcepoolstatusrequests", false, "status"),
    row("resource.k8s.io", "resourceslices", false, ""),
    row("scheduling.k8s.io", "podgroups", true, "status"),
    row("scheduling.k8s.io", "priorityclasses", false, ""),
    row("scheduling.k8s.io", "workloads", true, ""),
    row("storage.k8s.io", "csidrivers", false, ""),
    row("storage.k8s.io", "csinodes", false, ""),
    row("storage.k8s.io", "csistoragecapacities", true, ""),
    row("storage.k8s.io", "storageclasses", false, ""),
    row("storage.k8s.io", "volumeattachments", false, "status"),
    row("storage.k8s.io", "volumeattributesclasses", false, ""),
    row("storagemigration.k8s.io", "storageversionmigrations", false, "status"),
];

/// Finds a resource by group and plural; `core` is the empty group.
pub fn find_resource(group: &str, plural: &str) -> Option<&'static Resource> {
    let group = if group == "core" { "" } else { group };
    RESOURCES
        .iter()
        .find(|resource| resource.group == group && resource.plural == plural)
}

/// Says what to write in place of a name with a slash too many or a second subresource; nothing if it has neither.
pub(crate) fn explain_path(resource: &str) -> Option<String> {
    let parts: Vec<&str> = resource.split('/').collect();
    if parts.iter().any(|part| part.len() > 1 && part.contains('*')) {
        return Some(
            "write the whole plural: `*` stands for every resource, and for no part of a name".to_owned(),
        );
    }
    // The name of an extra field, which may have slashes of its own, is the subresource in impersonation.
    if parts[0] == "userextras" || (parts.len() <= 2 && !parts.contains(&"")) {
        return None;
    }
    let named: Vec<&str> = parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .take(2)
        .collect();
    Some(match named.is_empty() {
        true => "name a resource by its plural, as in `deployments`".to_owned(),
        false => format!("write `{}`", named.join("/")),
    })
}

/// Returns whether Kubernetes has an API group of this name.
pub fn is_kubernetes_group(group: &str) -> bool {
    group == "core" || RESOURCES.iter().any(|resource| resource.group == group)
}

impl Resource {
    /// The subresources and their verbs.
    fn subresources(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let listed = match self.subresources {
            CREATE_ONLY => "",
            listed => listed,
        };
        listed
            .split_whitespace()
            .map(|entry| entry.split_once(':').unwrap_or((entry, STATUS_VERBS)))
    }

    /// The verbs that a subresource knows; `None` if all verbs are possible, or which are is not known.
    fn verbs(&self, subresource: Option<&str>) -> Option<&'static str> {
        match subresource {
            None => (self.subresources == CREATE_ONLY).then_some("create"),
            Some(name) => self
                .subresources()
                .find_map(|(known, verbs)| (known == name).then_some(verbs)),
        }
    }

    fn has_subresource(&self, name: &str) -> bool {
        let mut others = VIRTUAL.iter().filter(|(plural, _)| *plural == self.plural);
        name == "finalizers"
            || self.subresources().any(|(known, _)| known == name)
            || others.any(|(_, names)| names.split_whitespace().any(|known| known == name))
    }

    /// Explains why a rule with these verbs allows nothing of this resource or its subresource: a word about it, and what
    /// to write.
    pub(crate) fn explain_rule(
        &self,
        subresource: Option<&str>,
        verbs: &[String],
    ) -> Option<(String, String)> {
        if let Some(said) = subresource.and_then(|name| self.explain_subresource(name)) {
            return Some(said);
        }
        let whole = self.plural;
        let known = self.verbs(subresource)?;
        if verbs.is_empty()
            || verbs
                .iter()
                .any(|verb| verb == "*" || known.split(',').any(|one| one == verb))
        {
            return None;
        }
        let name = subresource.map_or(whole.to_owned(), |name| format!("{whole}/{name}"));
        let verbs: Vec<&str> = known.split(',').collect();
        let message = format!("`{name}` knows none of these verbs, so nothing of it is allowed");
        Some((message, format!("it knows {}", suggest::list(verbs))))
    }

    /// Explains that there is no such subresource, and what to write.
    pub(crate) fn explain_subresource(&self, name: &str) -> Option<(String, String)> {
        if self.has_subresource(name) {
            return None;
        }
        let known: Vec<&str> = self.subresources().map(|(known, _)| known).collect();
        let help = match known.is_empty() {
            true => format!("write `{}`", self.plural),
            false => suggest::help(name, known),
        };
        Some((format!("`{}` has no subresource `{name}`", self.plural), help))
    }

    /// The admission operations on a subresource, or on the resource itself; `None` if it is not known.
    pub fn operations(&self, subresource: Option<&str>) -> Option<&'static [&'static str]> {
        match subresource {
            None if self.subresources == CREATE_ONLY => Some(&["CREATE"]),
            None => Some(&["CREATE", "UPDATE", "DELETE"]),
            Some("attach" | "exec" | "portforward" | "proxy") => Some(&["CONNECT"]),
            Some("log") => Some(&[]),
            Some(name) => match self.verbs(Some(name))? {
                "create" => Some(&["CREATE"]),
                _ => Some(&["UPDATE"]),
            },
        }
    }
}

/// Explains what is most likely wrong with the name of an API group: a word about it, and what to write.
///
/// Only Kubernetes has groups without a dot; those of a CustomResourceDefinition must have one.
pub fn explain_group(group: &str) -> Option<(String, String)> {
    if matches!(group, "" | "*" | "core") || GROUPS.contains(&group) {
        return None;
    }
    let known = || GROUPS.iter().copied();
    let near = if group.contains('.') {
        // Others have groups that are not far from Kubernetes'.
        known().find(|known| known.contains('.') && suggest::is_one_slip(group, known))?
    } else {
        let first_label =
            known().find(|known| known.split_once('.').is_some_and(|(first, _)| first == group));
        first_label
            .or_else(|| suggest::nearest(group, known()))
            .unwrap_or_default()
    };
    let help = match near {
        "" => "write the whole name, such as `batch.example.com`: groups of custom resources have a dot"
            .to_owned(),
        near => format!("did you mean `{near}`?"),
    };
    Some((format!("Kubernetes has no API group `{group}`"), help))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(said: Option<(String, String)>) -> Option<String> {
        said.map(|(message, help)| format!("{message}, {help}"))
    }

    #[test]
    fn every_group_is_listed() {
        for Resource { group, plural, .. } in RESOURCES {
            assert!(group.is_empty() || GROUPS.contains(group), "{group} {plural}");
        }
    }

    #[test]
    fn groups() {
        for (group, expected) in [
            ("", None),
            ("core", None),
            ("*", None),
            ("apps", None),
            ("extensions", None),
            ("example.com", None),
            ("metrics.k8s.io", None),
            ("gateway.networking.k8s.io", None),
            ("scheduling.x-k8s.io", None),
            (
                "app",
                Some("Kubernetes has no API group `app`, did you mean `apps`?"),
            ),
            (
                "networking",
                Some("Kubernetes has no API group `networking`, did you mean `networking.k8s.io`?"),
            ),
            (
                "netwroking.k8s.io",
                Some("Kubernetes has no API group `netwroking.k8s.io`, did you mean `networking.k8s.io`?"),
            ),
            (
                "tableware",
                Some(
                    "Kubernetes has no API group `tableware`, write the whole name, such as `batch.example.com`: groups of \
                     custom resources have a dot",
                ),
            ),
        ] {
            assert_eq!(text(explain_group(group)).as_deref(), expected, "{group}");
        }
    }

    #[test]
    fn subresources() {
        for (group, plural, subresource, verbs, expected) in [
            ("", "pods", Some("log"), "get", None),
            ("core", "pods", Some("log"), "get;list", None),
            ("", "pods", Some("exec"), "*", None),
            ("apps", "deployments", Some("finalizers"), "update", None),
            ("", "nodes", Some("metrics"), "get", None),
            ("", "pods", None, "list", None),
            ("", "pods", Some("log"), "", None),
            (
                "",
                "pods",
                Some("logs"),
                "get",
                Some("`pods` has no subresource `logs`, did you mean `log`?"),
            ),
            (
                "",
                "configmaps",
                Some("status"),
                "get",
                Some("`configmaps` has no subresource `status`, write `configmaps`"),
            ),
            (
                "",
                "pods",
                Some("log"),
                "create;list",
                Some("`pods/log` knows none of these verbs, so nothing of it is allowed, it knows `get`"),
            ),
            (
                "authentication.k8s.io",
                "tokenreviews",
                None,
                "get",
                Some(
                    "`tokenreviews` knows none of these verbs, so nothing of it is allowed, it knows `create`",
                ),
            ),
        ] {
            let verbs: Vec<String> = verbs.split_terminator(';').map(str::to_owned).collect();
            let resource = find_resource(group, plural).expect("a resource");
            let said = resource.explain_rule(subresource, &verbs);
            assert_eq!(text(said).as_deref(), expected, "{plural}/{subresource:?}");
        }
    }
}
