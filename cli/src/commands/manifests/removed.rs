//! CRDs that would be removed because their kind was deleted or renamed.
//!
//! If a CRD is removed from the repository, a GitOps controller may prune it from the cluster,
//! which deletes all objects of the kind. So removing a CRD that git tracks requires `--prune`.

use std::collections::BTreeSet;

use rbuilder_generator::{Diagnostic, FileRange};

use super::definition::Definition;
use super::layout::Layout;
use crate::plan::{Change, Plan};

/// Reports each CRD that would be removed: as an error if git tracks the file and `--prune` isn't
/// set, otherwise as a warning.
pub(super) fn find_removed(
    plan: &Plan,
    layout: &Layout,
    removes_tracked: bool,
    is_tracked: &dyn Fn(&str) -> bool,
) -> Vec<Diagnostic> {
    let changes = || plan.changes().iter().filter(|(path, _)| layout.holds_crd(path));
    let kept: BTreeSet<String> = changes()
        .flat_map(|(_, change)| Definition::read_all(change.after().unwrap_or_default()))
        .map(|crd| crd.name())
        .collect();
    changes()
        .flat_map(|(path, change)| {
            let removed = removed_from(path, change, &kept);
            removed.into_iter().map(move |(path, crd)| (path, change, crd))
        })
        .map(|(path, change, crd)| match !removes_tracked && is_tracked(path) {
            true => error(path, change, &crd),
            false => warning(path, change, &crd),
        })
        .collect()
}

fn name_removed(path: &str, change: &Change, crd: &Definition) -> String {
    match change.after() {
        Some(_) => format!("`{}` in `{path}`", crd.name()),
        None => format!("`{path}`"),
    }
}

fn removed_from<'a>(path: &'a str, change: &Change, kept: &BTreeSet<String>) -> Vec<(&'a str, Definition)> {
    let removed = Definition::read_all(change.before()).into_iter();
    removed
        .filter(|crd| !kept.contains(&crd.name()))
        .map(|crd| (path, crd))
        .collect()
}

fn describe_removal(crd: &str, kind: &str) -> String {
    format!(
        "when `{crd}` is deleted from a cluster, as a GitOps tool that prunes does, every `{kind}` there is deleted with it"
    )
}

fn error(path: &str, change: &Change, crd: &Definition) -> Diagnostic {
    let consequence = describe_removal(&crd.name(), &crd.names.kind);
    Diagnostic::error(
        FileRange::new(path, 0..0),
        format!(
            "{} would be deleted, because the source no longer defines the kind: {consequence}",
            name_removed(path, change, crd)
        ),
    )
    .help(
        "if that is intended, run `rbuilder manifests --prune`; to keep the CRD until its objects have been moved or deleted, \
         run `rbuilder manifests --no-prune`",
    )
}

fn warning(path: &str, change: &Change, crd: &Definition) -> Diagnostic {
    let consequence = describe_removal(&crd.name(), &crd.names.kind);
    Diagnostic::warning(
        FileRange::new(path, 0..0),
        format!(
            "{} is deleted, because the source no longer defines the kind: {consequence}",
            name_removed(path, change, crd)
        ),
    )
    .help("to keep the CRD until its objects have been moved or deleted, restore it and run `rbuilder manifests --no-prune`")
}
