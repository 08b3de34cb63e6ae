//! Warnings about CRDs that the program changes before it writes or applies them.

use super::merge::Versions;
use crate::package::{Package, Patch};
use crate::place::Place;
use crate::report::Report;
use crate::resolve::{Target, lookup_path};

/// The places where the program changes the CRD of a kind.
pub(super) fn find_patches(package: &Package, versions: &Versions<'_>) -> Vec<Place> {
    let of_kind = package
        .patches
        .iter()
        .filter(|patch| is_of(package, patch, versions));
    of_kind
        .map(|patch| Place {
            file: patch.file,
            span: patch.span,
        })
        .collect()
}

/// Returns whether a patch is of one of these versions. A function can import names of its own, which are not read, so a name
/// that leads nowhere is compared with that of the kind.
fn is_of(package: &Package, patch: &Patch, versions: &Versions<'_>) -> bool {
    match lookup_path(package, patch.module, &patch.kind) {
        Target::Root(id) => versions.iter().any(|(version, _)| *version == id),
        Target::Missing(_) | Target::Hidden(_) => versions.iter().any(|(_, resource)| {
            let root = resource.root.as_ref().unwrap_or(&resource.kind);
            patch.kind.last() == Some(root)
        }),
        _ => false,
    }
}

/// Warns of each place.
pub(super) fn report_patches(kind: &str, places: &[Place], report: &mut Report) {
    let message =
        format!("the program changes the CRD of `{kind}` here; the generated CRD does not have this change");
    let help = format!(
        "write it as attributes of the type, or as a patch of the manifest, such as one of kustomize; to use the CRD that the program writes instead, add `\"{kind}\"` to `skip` below `[package.metadata.rbuilder]` in Cargo.toml"
    );
    for place in places {
        report.warning(*place, message.as_str(), &help);
    }
}
