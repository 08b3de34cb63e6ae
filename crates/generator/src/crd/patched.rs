//! Warns about CRDs that the program modifies before it writes or applies them.

use std::collections::BTreeMap;

use super::merge::Versions;
use crate::package::{Package, TypeId};
use crate::place::Place;
use crate::report::Report;
use crate::resolve::{Target, lookup_path};

/// The places where the program modifies a CRD, by position of the kind.
pub(super) type Patches = BTreeMap<usize, Vec<Place>>;

pub(super) fn find_patches(package: &Package, kinds: &BTreeMap<(&str, &str), Versions<'_>>) -> Patches {
    let mut by_item: BTreeMap<TypeId, usize> = BTreeMap::new();
    let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
    for (position, versions) in kinds.values().enumerate() {
        for (id, resource) in versions {
            by_item.insert(*id, position);
            by_name.insert(resource.root.as_ref().unwrap_or(&resource.kind), position);
        }
    }
    let mut found = Patches::new();
    for patch in &package.patches {
        let position = match lookup_path(package, patch.module, &patch.kind) {
            Target::Root(id) => by_item.get(&id),
            Target::Missing(_) | Target::Hidden(_) => {
                // Imports inside of functions aren't read, so go by the name alone.
                patch.kind.last().and_then(|name| by_name.get(name.as_str()))
            }
            _ => None,
        };
        if let Some(position) = position {
            found.entry(*position).or_default().push(Place {
                file: patch.file,
                span: patch.span,
            });
        }
    }
    found
}

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
