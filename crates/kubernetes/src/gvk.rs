//! Groups and versions, in `apiVersion` and in names of kinds and resources.
//!
//! Follows `k8s.io/apimachinery/pkg/runtime/schema`.

/// Splits an `apiVersion` into group and version. The group of the core API is empty.
#[must_use]
pub fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Returns the group of an `apiVersion`.
#[must_use]
pub fn group_of(api_version: &str) -> &str {
    split(api_version).0
}

/// Joins a group, which may be empty, and a version to an `apiVersion`.
#[must_use]
pub fn api_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

/// Appends the group, unless it is empty, to the name of a resource or kind, e.g.
/// `deployments.apps`.
#[must_use]
pub fn qualify(name: &str, group: &str) -> String {
    match group {
        "" => name.to_owned(),
        group => format!("{name}.{group}"),
    }
}

/// Formats a resource or kind like an argument of kubectl, e.g. `Deployment.v1.apps`, or `Pod` in the
/// core API.
#[must_use]
pub fn argument(name: &str, api_version: &str) -> String {
    match split(api_version) {
        ("", _) => name.to_owned(),
        (group, version) => format!("{name}.{version}.{group}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_group_is_empty() {
        for (text, group, version) in [("apps/v1", "apps", "v1"), ("v1", "", "v1"), ("", "", "")] {
            assert_eq!(split(text), (group, version));
            assert_eq!(group_of(text), group);
            assert_eq!(api_version(group, version), text);
        }
        assert_eq!(qualify("deployments", "apps"), "deployments.apps");
        assert_eq!(qualify("pods", ""), "pods");
        assert_eq!(argument("Deployment", "apps/v1"), "Deployment.v1.apps");
        assert_eq!(argument("Pod", "v1"), "Pod");
    }
}
