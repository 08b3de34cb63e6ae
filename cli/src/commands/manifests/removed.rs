//! CRDs that would be removed because their kind was deleted or renamed.
//!
//! If a CRD is removed from the repository, a GitOps controller may prune it from the cluster,
//! which deletes all objects of the kind. So removing a CRD that git tracks requires `--prune`.

use std::collections::BTreeSet;

use rbuilder_generator::{Diagnostic, FileRange};
use rbuilder_kubernetes::crd::Crd;

use super::definition::{ChangedFile, list_crds};

/// Reports each CRD that would be removed: as an error if git tracks the file and `--prune` isn't
/// set, otherwise as a warning.
pub(super) fn find_removed(
    changed: &[ChangedFile],
    removes_tracked: bool,
    is_tracked: &dyn Fn(&str) -> bool,
) -> Vec<Diagnostic> {
    let kept: BTreeSet<String> = changed
        .iter()
        .flat_map(|file| list_crds(&file.after))
        .map(Crd::expected_name)
        .collect();
    let before = changed
        .iter()
        .flat_map(|file| list_crds(&file.before).map(move |crd| (file, crd)));
    before
        .filter(|(_, crd)| !kept.contains(&crd.expected_name()))
        .map(|(file, crd)| match !removes_tracked && is_tracked(&file.path) {
            true => error(file, crd),
            false => warning(file, crd),
        })
        .collect()
}

fn name_removed(file: &ChangedFile, crd: Crd<'_>) -> String {
    match file.is_deleted {
        false => format!("`{}` in `{}`", crd.expected_name(), file.path),
        true => format!("`{}`", file.path),
    }
}

fn describe_removal(crd: &str, kind: &str) -> String {
    format!(
        "when `{crd}` is deleted from a cluster, as a GitOps tool that prunes does, every `{kind}` there is deleted with it"
    )
}

fn error(file: &ChangedFile, crd: Crd<'_>) -> Diagnostic {
    let consequence = describe_removal(&crd.expected_name(), crd.kind());
    Diagnostic::error(
        FileRange::new(&file.path, 0..0),
        format!(
            "{} would be deleted, because the source no longer defines the kind: {consequence}",
            name_removed(file, crd)
        ),
    )
    .help(
        "if that is intended, run `rbuilder manifests --prune`; to keep the CRD until its objects have been moved or deleted, \
         run `rbuilder manifests --no-prune`",
    )
}

fn warning(file: &ChangedFile, crd: Crd<'_>) -> Diagnostic {
    let consequence = describe_removal(&crd.expected_name(), crd.kind());
    Diagnostic::warning(
        FileRange::new(&file.path, 0..0),
        format!(
            "{} is deleted, because the source no longer defines the kind: {consequence}",
            name_removed(file, crd)
        ),
    )
    .help("to keep the CRD until its objects have been moved or deleted, restore it and run `rbuilder manifests --no-prune`")
}
