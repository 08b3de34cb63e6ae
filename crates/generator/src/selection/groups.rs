//! API groups of well-known projects. A Rust program declares a kind in one of these groups only to
//! use it.

use std::sync::LazyLock;

/// One sorted line per group. The columns are the group or a suffix such as `*.dapr.io`, the
/// project that owns it, and the repository with its CRDs.
///
/// A group is listed if a project that isn't written in Rust publishes its CRDs, because a Rust
/// type in that group can only be a binding. A project that does own such a group can claim it in
/// PROJECT or in `[package.metadata.rbuilder]`.
///
/// The list just improves messages: [signs](super::signs) also recognize kinds of other projects.
const GROUPS: &str = include_str!("groups.tsv");

/// Returns the project that owns an API group, e.g. `cert-manager` for `cert-manager.io`. Only
/// covers projects that publish their CRDs and aren't written in Rust.
pub fn find_group_owner(group: &str) -> Option<&'static str> {
    let is_end = |row: &&Row| {
        row.group
            .strip_prefix('*')
            .is_some_and(|end| group.ends_with(end))
    };
    let mut ends = ROWS.iter().take_while(|row| row.group.starts_with('*'));
    let exact = || ROWS.binary_search_by(|row| row.group.cmp(group)).ok();
    let found = ends.find(is_end).or_else(|| ROWS.get(exact()?));
    found.map(|row| row.owner)
}

struct Row {
    group: &'static str,
    owner: &'static str,
    #[cfg(test)]
    repository: &'static str,
}

/// Suffixes come first, because `*` sorts before letters.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let row = |line: &'static str| {
        let mut cells = line.split('\t');
        Some(Row {
            group: cells.next()?,
            owner: cells.next()?,
            #[cfg(test)]
            repository: cells.next()?,
        })
    };
    GROUPS.lines().filter_map(row).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_sorted_and_unique() {
        let groups: Vec<&str> = ROWS.iter().map(|row| row.group).collect();
        assert!(groups.is_sorted_by(|a, b| a < b));
        assert_eq!(groups.len(), GROUPS.lines().count());
        let mut repositories = ROWS.iter().map(|row| row.repository);
        assert!(repositories.all(|repository| repository.split('/').count() == 2));
    }

    #[test]
    fn finds_owner_of_group() {
        for (group, expected) in [
            ("monitoring.coreos.com", Some("Prometheus Operator")),
            ("sriovnetwork.openshift.io", Some("SR-IOV Network Operator")),
            ("coreos.com", None),
            ("iam.cnrm.cloud.google.com", Some("Config Connector")),
            ("eks.services.k8s.aws", Some("AWS Controllers for Kubernetes")),
            ("services.k8s.aws", None),
        ] {
            assert_eq!(find_group_owner(group), expected, "{group}");
        }
    }
}
