//! The built-in resources of Kubernetes, with their scopes and their subresources, including the
//! verbs.

use super::table::RESOURCES;
use crate::suggest;

/// A resource, as described by kube-apiserver's discovery API.
#[derive(Debug)]
pub struct Resource {
    pub(super) group: &'static str,
    /// Without the version, e.g. `api::apps`.
    pub(super) module: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    short_names: &'static str,
    /// True if the resource is namespaced.
    pub is_namespaced: bool,
    /// The verbs of a resource that cannot be watched, separated by commas, e.g. only `create` for
    /// reviews. Empty for all others.
    limited_verbs: &'static str,
    /// Names of subresources, each followed by `:` and its verbs unless these are `STATUS_VERBS`.
    subresources: &'static str,
}

#[allow(clippy::too_many_arguments)] // the columns of a table
pub(super) const fn row(
    group: &'static str,
    module: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static str,
    is_namespaced: bool,
    limited_verbs: &'static str,
    subresources: &'static str,
) -> Resource {
    Resource {
        group,
        module,
        kind,
        plural,
        short_names,
        is_namespaced,
        limited_verbs,
        subresources,
    }
}

/// The verbs of `status`, `scale` and most other subresources.
const STATUS_VERBS: &str = "get,patch,update";

/// Subresources that are never served. They exist only for authorization, e.g. of the kubelet, of
/// certificate signers, and of admission plugins in OpenShift (RestrictedEndpointsAdmission).
const VIRTUAL: &[(&str, &str)] = &[
    ("nodes", "log metrics stats spec checkpoint configz healthz pods"),
    (
        "certificatesigningrequests",
        "nodeclient selfnodeclient selfnodeserver",
    ),
    ("resourceclaims", "binding driver"),
    ("endpoints", "restricted"),
    ("endpointslices", "restricted"),
];

/// No longer served, but still used in old projects.
const FORMER_GROUP: &str = "extensions";

/// Finds a resource by group and plural. `core` is an alias of the core group.
pub fn find_resource(group: &str, plural: &str) -> Option<&'static Resource> {
    let group = if group == "core" { "" } else { group };
    RESOURCES
        .iter()
        .find(|resource| resource.group == group && resource.plural == plural)
}

/// Returns help for a resource with too many slashes or subresources, or `None` if it has neither.
pub(crate) fn explain_path(resource: &str) -> Option<String> {
    let parts: Vec<&str> = resource.split('/').collect();
    if parts.iter().any(|part| part.len() > 1 && part.contains('*')) {
        return Some("write the whole plural: `*` cannot stand for a part of a name".to_owned());
    }
    // For impersonation, the subresource is the name of an extra field, which may have slashes.
    if parts[0] == "userextras" || (parts.len() <= 2 && !parts.contains(&"")) {
        return None;
    }
    let named: Vec<&str> = parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .take(2)
        .collect();
    Some(match named.is_empty() {
        true => "write a resource by its plural, as in `deployments`".to_owned(),
        false => format!("write `{}`", named.join("/")),
    })
}

/// Returns whether this is one of Kubernetes' own API groups.
pub fn is_kubernetes_group(group: &str) -> bool {
    group == "core" || RESOURCES.iter().any(|resource| resource.group == group)
}

impl Resource {
    pub(super) fn short_names(&self) -> impl Iterator<Item = &'static str> {
        self.short_names.split_whitespace()
    }

    pub(super) fn is_watchable(&self) -> bool {
        self.limited_verbs.is_empty()
    }

    pub(super) fn is_written(&self) -> bool {
        self.is_watchable() || self.limited_verbs == "create"
    }

    fn subresources(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.subresources
            .split_whitespace()
            .map(|entry| entry.split_once(':').unwrap_or((entry, STATUS_VERBS)))
    }

    /// Returns the verbs of a subresource, or of the resource itself without a name. Returns `None`
    /// if they are unknown or unrestricted.
    fn verbs(&self, subresource: Option<&str>) -> Option<&'static str> {
        match subresource {
            None => Some(self.limited_verbs).filter(|verbs| !verbs.is_empty()),
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
        let message = format!("`{name}` supports none of these verbs");
        Some((message, format!("use one of {}", suggest::list_names(verbs))))
    }

    pub(crate) fn explain_subresource(&self, name: &str) -> Option<(String, String)> {
        if self.has_subresource(name) {
            return None;
        }
        let known: Vec<&str> = self.subresources().map(|(known, _)| known).collect();
        let help = match known.is_empty() {
            true => format!("write `{}`", self.plural),
            false => suggest::describe_candidates(name, known),
        };
        Some((format!("`{}` has no subresource `{name}`", self.plural), help))
    }

    /// Returns the admission operations for a subresource, or for the resource itself. Returns
    /// `None` for an unknown subresource.
    pub fn operations(&self, subresource: Option<&str>) -> Option<&'static [&'static str]> {
        match subresource {
            None if self.limited_verbs == "create" => Some(&["CREATE"]),
            None if !self.is_written() => Some(&[]),
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

/// Returns a message and its help if the name of an API group is probably a mistake.
///
/// A name without a dot is a mistake unless the group is built in: the group of a
/// CustomResourceDefinition must have a dot.
pub fn explain_group(group: &str) -> Option<(String, String)> {
    if matches!(group, "" | "*" | "core") || group == FORMER_GROUP || is_kubernetes_group(group) {
        return None;
    }
    let known = || {
        let named = RESOURCES.iter().map(|resource| resource.group);
        named.filter(|group| !group.is_empty()).chain([FORMER_GROUP])
    };
    let near = if group.contains('.') {
        // Groups of other projects can have similar names, so only correct a single slip.
        known().find(|known| known.contains('.') && suggest::is_one_slip(group, known))?
    } else {
        let first_label =
            known().find(|known| known.split_once('.').is_some_and(|(first, _)| first == group));
        first_label
            .or_else(|| suggest::find_nearest(group, known()))
            .unwrap_or_default()
    };
    let help = match near {
        "" => "write the full name, such as `batch.example.com`: groups of custom resources have a dot"
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
    fn explains_unknown_groups() {
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
                    "Kubernetes has no API group `tableware`, write the full name, such as `batch.example.com`: groups of custom resources have a dot",
                ),
            ),
        ] {
            assert_eq!(text(explain_group(group)).as_deref(), expected, "{group}");
        }
    }

    #[test]
    fn explains_unknown_subresources_and_verbs() {
        for (group, plural, subresource, verbs, expected) in [
            ("", "pods", Some("log"), "get", None),
            ("core", "pods", Some("log"), "get;list", None),
            ("", "pods", Some("exec"), "*", None),
            ("apps", "deployments", Some("finalizers"), "update", None),
            ("", "nodes", Some("metrics"), "get", None),
            ("", "endpoints", Some("restricted"), "create", None),
            (
                "discovery.k8s.io",
                "endpointslices",
                Some("restricted"),
                "create",
                None,
            ),
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
                Some("`pods/log` supports none of these verbs, use one of `get`"),
            ),
            (
                "authentication.k8s.io",
                "tokenreviews",
                None,
                "get",
                Some("`tokenreviews` supports none of these verbs, use one of `create`"),
            ),
        ] {
            let verbs: Vec<String> = verbs.split_terminator(';').map(str::to_owned).collect();
            let resource = find_resource(group, plural).expect("a resource");
            let said = resource.explain_rule(subresource, &verbs);
            assert_eq!(text(said).as_deref(), expected, "{plural}/{subresource:?}");
        }
    }
}
