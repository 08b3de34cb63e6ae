//! API groups of projects that install their own CRDs, and whose kinds other programs declare to talk to them.

use std::sync::LazyLock;

/// A line for each group, sorted: the group, or `*.` and an end of groups; the project that it belongs to; and the repository
/// with its CRDs. A group is listed when its CRDs are published by a project that is not written in Rust, so that a Rust type
/// of it can be nothing but a binding. A project that owns a listed group all the same says so in PROJECT or in
/// `[package.metadata.rbuilder]`.
///
/// The list only makes messages better: [signs](super::signs) find the kinds of projects that nobody has listed.
const GROUPS: &str = include_str!("groups.tsv");

/// Returns the project that an API group belongs to: one of those that publish their CRDs and are not written in Rust, such as
/// `cert-manager` for `cert-manager.io`.
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

/// A line of the list.
struct Row {
    group: &'static str,
    owner: &'static str,
    #[cfg(test)]
    repository: &'static str,
}

/// The lines, which are sorted: ends of groups come first. They are parsed once, because each kind is looked up.
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
    fn groups_are_sorted_and_known_once() {
        let groups: Vec<&str> = ROWS.iter().map(|row| row.group).collect();
        assert!(groups.is_sorted_by(|a, b| a < b));
        assert_eq!(groups.len(), GROUPS.lines().count());
        let mut repositories = ROWS.iter().map(|row| row.repository);
        assert!(repositories.all(|repository| repository.split('/').count() == 2));
    }

    #[test]
    fn owners_are_found_by_group() {
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
