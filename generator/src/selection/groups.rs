//! API groups of projects that install their own CRDs, and whose kinds other programs declare to talk to them.

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
    rows()
        .find(|(known, ..)| is_of(group, known))
        .map(|(_, owner, _)| owner)
}

fn is_of(group: &str, known: &str) -> bool {
    match known.strip_prefix('*') {
        Some(end) => group.ends_with(end),
        None => group == known,
    }
}

fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    GROUPS.lines().filter_map(|line| {
        let mut cells = line.split('\t');
        Some((cells.next()?, cells.next()?, cells.next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_sorted_and_known_once() {
        let groups: Vec<&str> = rows().map(|(group, ..)| group).collect();
        assert!(groups.is_sorted_by(|a, b| a < b));
        assert_eq!(groups.len(), GROUPS.lines().count());
        assert!(rows().all(|(.., repository)| repository.split('/').count() == 2));
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
