//! Looks up built-in Kubernetes kinds as users spell them: by group, version and kind.

use rbuilder_catalogue::{Catalogue, Minor};
use rbuilder_diagnostic::suggest;
use rbuilder_syntax::kubernetes::BuiltinKind;

/// Versions of built-in kinds, by decreasing stability and then from newest to oldest.
const VERSIONS: [&str; 11] = [
    "v2", "v1", "v2beta2", "v2beta1", "v1beta3", "v1beta2", "v1beta1", "v1alpha4", "v1alpha3", "v1alpha2",
    "v1alpha1",
];

/// A built-in kind in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesKind {
    /// The API group. `""` is the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind, e.g. `Deployment`.
    pub kind: String,
    /// The plural, e.g. `deployments`.
    pub plural: String,
    /// The path of the Rust type, e.g. `k8s_openapi::api::apps::v1::Deployment`.
    pub path: String,
    /// True if the kind is namespaced.
    pub is_namespaced: bool,
    /// True if objects can be listed and watched. False for e.g. reviews.
    pub is_watchable: bool,
    /// True if clients can write objects; webhooks are only called for these. False for e.g.
    /// `ComponentStatus`, which the API server computes itself.
    pub is_written: bool,
    /// True if this is the newest stable version of the kind.
    pub is_preferred: bool,
}

/// Looks up a built-in kind in a minor version of Kubernetes, or in the newest one. The group may
/// be abbreviated (`networking` for `networking.k8s.io`), and the core group may be `core` or
/// empty.
pub fn find_kubernetes_kind(
    minor: Option<Minor>,
    group: &str,
    version: &str,
    kind: &str,
) -> Option<KubernetesKind> {
    let catalogue = Catalogue::new(minor.unwrap_or_default());
    let known = BuiltinKind::of_group(group).find(|known| known.kind() == kind)?;
    let path = known.path(version);
    let newest = find_versions(&catalogue, &known).into_iter().next();
    catalogue.contains(&path).then(|| KubernetesKind {
        group: known.group().to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: known.plural().to_owned(),
        path,
        is_namespaced: known.is_namespaced(),
        is_watchable: known.is_watchable(),
        is_written: known.is_written(),
        is_preferred: newest == Some(version) && !version.contains(['a', 'b']),
    })
}

/// Suggests a similar kind if [`find_kubernetes_kind`] finds nothing. The text is in the
/// imperative.
pub fn explain_unknown_kind(minor: Option<Minor>, group: &str, version: &str, kind: &str) -> Option<String> {
    let catalogue = Catalogue::new(minor.unwrap_or_default());
    let spell = |known: &BuiltinKind, version: &str| {
        let group = match known.group() {
            "" => "core",
            group => group,
        };
        format!("--group {group} --version {version} --kind {}", known.kind())
    };
    let newest = |known: &BuiltinKind| find_versions(&catalogue, known).into_iter().next();
    if let Some(known) = BuiltinKind::of_group(group).find(|known| known.kind() == kind) {
        let other = newest(&known).filter(|other| *other != version)?;
        return Some(format!("for the built-in kind, pass `{}`", spell(&known, other)));
    }
    let kinds = BuiltinKind::of_group(group).map(|known| known.kind());
    let near = suggest::find_nearest(kind, kinds);
    let known = match near {
        Some(near) => BuiltinKind::of_group(group).find(|known| known.kind() == near)?,
        None => BuiltinKind::all().find(|known| known.kind() == kind)?,
    };
    Some(format!(
        "did you mean the built-in kind of `{}`?",
        spell(&known, newest(&known)?)
    ))
}

/// Returns true for Kubernetes' own groups. The name may be abbreviated.
pub fn is_kubernetes_group(group: &str) -> bool {
    BuiltinKind::of_group(group).next().is_some()
}

fn find_versions(catalogue: &Catalogue<'_>, known: &BuiltinKind) -> Vec<&'static str> {
    let has = |version: &&str| catalogue.contains(&known.path(version));
    VERSIONS.into_iter().filter(has).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_kinds_by_abbreviated_group() {
        for (group, version, kind, path) in [
            (
                "apps",
                "v1",
                "Deployment",
                Some("k8s_openapi::api::apps::v1::Deployment"),
            ),
            ("core", "v1", "Pod", Some("k8s_openapi::api::core::v1::Pod")),
            ("", "v1", "Node", Some("k8s_openapi::api::core::v1::Node")),
            (
                "networking",
                "v1",
                "Ingress",
                Some("k8s_openapi::api::networking::v1::Ingress"),
            ),
            (
                "networking.k8s.io",
                "v1",
                "Ingress",
                Some("k8s_openapi::api::networking::v1::Ingress"),
            ),
            ("rbac", "v1", "Role", Some("k8s_openapi::api::rbac::v1::Role")),
            (
                "rbac.authorization",
                "v1",
                "Role",
                Some("k8s_openapi::api::rbac::v1::Role"),
            ),
            (
                "events",
                "v1",
                "Event",
                Some("k8s_openapi::api::events::v1::Event"),
            ),
            ("apps", "v2", "Deployment", None),
            ("apps", "v1", "Cup", None),
            ("cache", "v1", "Pod", None),
        ] {
            let found = find_kubernetes_kind(None, group, version, kind);
            assert_eq!(
                found.as_ref().map(|found| found.path.as_str()),
                path,
                "{group} {kind}"
            );
        }
    }

    #[test]
    fn scopes_and_preferred_versions() {
        let find = |group, version, kind| find_kubernetes_kind(None, group, version, kind).expect(kind);
        assert!(!find("", "v1", "Node").is_namespaced && find("", "v1", "Pod").is_namespaced);
        let review = find("authentication", "v1", "TokenReview");
        assert!(!review.is_watchable && review.is_written);
        let status = find("core", "v1", "ComponentStatus");
        assert!(!status.is_watchable && !status.is_written);
        let autoscaler = |version| find("autoscaling", version, "HorizontalPodAutoscaler").is_preferred;
        assert!(autoscaler("v2") && !autoscaler("v1"));
    }

    #[test]
    fn suggests_similar_kinds() {
        for (group, version, kind, expected) in [
            (
                "apps",
                "v1beta1",
                "Deployment",
                Some("for the built-in kind, pass `--group apps --version v1 --kind Deployment`"),
            ),
            (
                "apps",
                "v1",
                "Deploymnet",
                Some("did you mean the built-in kind of `--group apps --version v1 --kind Deployment`?"),
            ),
            (
                "core",
                "v1",
                "Deployment",
                Some("did you mean the built-in kind of `--group apps --version v1 --kind Deployment`?"),
            ),
            ("cache", "v1", "Memcached", None),
        ] {
            let said = explain_unknown_kind(None, group, version, kind);
            assert_eq!(said.as_deref(), expected, "{group} {kind}");
        }
    }
}
