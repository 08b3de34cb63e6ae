//! The built-in kinds and resources of Kubernetes: groups, plurals and scopes, by the paths of
//! their types in `k8s-openapi`.
//!
//! `cargo xtask catalogue` generates the table from the discovery documents published by
//! Kubernetes. Roles and webhooks are checked against it, and `create` looks up kinds in it.

pub mod resources;
mod table;

use rbuilder_diagnostic::suggest;

use resources::Resource;
use table::RESOURCES;

/// A kind and its resource, as referred to in webhooks and rules.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the API's names
pub struct Kind {
    /// The API group. `""` is the core group.
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
}

/// Returns the kind for the canonical path of a type, e.g.
/// `k8s_openapi::api::apps::v1::Deployment`.
pub fn find_kind(path: &str) -> Option<Kind> {
    let rest = path.strip_prefix("k8s_openapi::")?;
    let (rest, kind) = rest.rsplit_once("::")?;
    let (module, version) = rest.rsplit_once("::")?;
    let known = RESOURCES
        .iter()
        .find(|known| known.module == module && known.kind == kind)?;
    Some(Kind {
        group: known.group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: known.plural.to_owned(),
    })
}

/// A kind served by kube-apiserver, in any version.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinKind {
    resource: &'static Resource,
}

impl BuiltinKind {
    /// Returns the kinds of a group. The group can be abbreviated, e.g. `core` or `""` for the core
    /// group, `networking` for `networking.k8s.io`, and `rbac` or `rbac.authorization` for
    /// `rbac.authorization.k8s.io`.
    pub fn of_group(group: &str) -> impl Iterator<Item = BuiltinKind> {
        let is_meant = move |known: &&Resource| {
            let short = known.module.rsplit("::").next();
            match group {
                "" | "core" => known.group.is_empty(),
                _ => {
                    let within = known.group.strip_suffix(".k8s.io");
                    known.group == group || within == Some(group) || short == Some(group)
                }
            }
        };
        RESOURCES
            .iter()
            .filter(is_meant)
            .map(|resource| BuiltinKind { resource })
    }

    /// Returns all kinds.
    pub fn all() -> impl Iterator<Item = BuiltinKind> {
        RESOURCES.iter().map(|resource| BuiltinKind { resource })
    }

    /// Returns the API group. `""` is the core group.
    pub fn group(&self) -> &'static str {
        self.resource.group
    }

    /// Returns the kind, e.g. `Deployment`.
    pub fn kind(&self) -> &'static str {
        self.resource.kind
    }

    /// Returns the plural, e.g. `deployments`.
    pub fn plural(&self) -> &'static str {
        self.resource.plural
    }

    /// Returns whether the kind is namespaced.
    pub fn is_namespaced(&self) -> bool {
        self.resource.is_namespaced
    }

    /// Returns whether objects of the kind can be watched. Some are never stored: the API server
    /// just answers a `TokenReview`, and computes a `ComponentStatus` anew for each request.
    pub fn is_watchable(&self) -> bool {
        self.resource.is_watchable()
    }

    /// Returns whether clients can write objects of the kind.
    pub fn is_written(&self) -> bool {
        self.resource.is_written()
    }

    /// Returns the canonical path of the type in a version, even if it doesn't exist in any release
    /// of Kubernetes.
    pub fn path(&self, version: &str) -> String {
        format!(
            "k8s_openapi::{}::{version}::{}",
            self.resource.module, self.resource.kind
        )
    }
}

/// Returns a message and its help if the resource of a rule is probably a mistake.
///
/// It may be the plural of another group, a short name, or a misspelled plural in one of `groups`.
/// A resource that isn't similar to any of these may just be newer than our table.
pub(crate) fn explain_resource(groups: &[String], resource: &str) -> Option<(String, String)> {
    let resource = resource.split('/').next().unwrap_or_default();
    let named: Vec<&str> = groups
        .iter()
        .map(|group| if group == "core" { "" } else { group.as_str() })
        .collect();
    let is_known = |group: &&str| RESOURCES.iter().any(|known| known.group == *group);
    if named.is_empty() || !named.iter().all(is_known) {
        return None;
    }
    let is_named = |known: &&Resource| named.contains(&known.group);
    let has_name = |known: &&Resource| known.plural == resource;
    if resource == "*" || RESOURCES.iter().filter(is_named).any(|known| has_name(&known)) {
        return None;
    }
    let of = match named[..] {
        [""] => "the core group has".to_owned(),
        [one] => format!("the group `{one}` has"),
        _ => "none of these groups has".to_owned(),
    };
    let no = if named.len() == 1 { "no" } else { "a" };
    let message = format!("{of} {no} resource `{resource}`");
    let is_short = |known: &&Resource| known.short_names().any(|short| short == resource);
    if let Some(known) = RESOURCES.iter().find(is_short) {
        let help = format!("write `{}`: rules need full names", known.plural);
        return Some((message, help));
    }
    if let Some(known) = RESOURCES.iter().find(has_name) {
        return Some((message, format!("write `groups = \"{}\"`", known.group)));
    }
    let plurals = RESOURCES.iter().filter(is_named).map(|known| known.plural);
    let near = suggest::find_nearest(resource, plurals)?;
    Some((message, format!("did you mean `{near}`?")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explains_likely_typos() {
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
            // Neither in the table nor similar to an entry.
            (&["certificates.k8s.io"], "signers", None),
            (&[""], "users", None),
            (&["authentication.k8s.io"], "userextras/scopes", None),
        ];
        for (groups, resource, expected) in cases {
            let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
            let said =
                explain_resource(&groups, resource).map(|(message, help)| format!("{message}, {help}"));
            assert_eq!(said.as_deref(), expected, "{groups:?} {resource}");
        }
    }

    #[test]
    fn finds_kinds_by_path() {
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
            let found = find_kind(path);
            let found = found
                .as_ref()
                .map(|kind| (kind.group.as_str(), kind.version.as_str(), kind.plural.as_str()));
            assert_eq!(found, expected, "{path}");
        }
    }
}
