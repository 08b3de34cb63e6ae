//! CRDs before and after a run, as needed for several warnings.

use rbuilder_generator::{FileRange, KindSummary};
use rbuilder_kubernetes::crd::Crd;
use rbuilder_yaml::{list_items, parse_documents};
use serde_json::Value;

use super::layout::Layout;
use crate::crd_file::without_template;
use crate::plan::{Change, Plan};

pub(super) fn list_crds(objects: &[Value]) -> impl Iterator<Item = Crd<'_>> {
    objects.iter().filter_map(Crd::read)
}

/// What a CRD is about. Two CRDs with the same names are the same one.
pub(super) fn names_of(crd: Crd<'_>) -> (&str, &str) {
    (crd.group(), crd.plural())
}

/// Location of the kind in the source, or else of the manifest.
pub(super) fn place_of(crd: Crd<'_>, path: &str, kinds: &[KindSummary]) -> FileRange {
    let mut kinds = kinds.iter();
    let kind = kinds.find(|kind| (kind.group.as_str(), kind.plural.as_str()) == names_of(crd));
    kind.map_or_else(|| FileRange::new(path, 0..0), |kind| kind.place.clone())
}

/// Parses the objects in a manifest. Empty if it isn't valid YAML, as then it can't be ours.
pub(super) fn read_objects(text: &str) -> Vec<Value> {
    let documents = parse_documents(&without_template(text)).unwrap_or_default();
    documents.into_iter().flat_map(list_items).collect()
}

/// A file with CRDs that the plan changes. Parsing a CRD is about as expensive as generating it, so
/// all checks share the parsed objects.
pub(super) struct ChangedFile {
    pub(super) path: String,
    /// The objects in the file. Empty for a new one.
    pub(super) before: Vec<Value>,
    /// The objects that will be in the file. Empty if it is deleted.
    pub(super) after: Vec<Value>,
    pub(super) is_deleted: bool,
}

impl ChangedFile {
    pub(super) fn read(path: &str, before: &str, after: Option<&str>) -> Self {
        ChangedFile {
            path: path.to_owned(),
            before: read_objects(before),
            after: after.map(read_objects).unwrap_or_default(),
            is_deleted: after.is_none(),
        }
    }

    /// Returns the CRDs that exist both before and after the change, in pairs.
    pub(super) fn kept(&self) -> impl Iterator<Item = (Crd<'_>, Crd<'_>)> {
        let new = |old| list_crds(&self.after).find(|new| names_of(*new) == names_of(old));
        list_crds(&self.before).filter_map(move |old| Some((old, new(old)?)))
    }
}

pub(super) fn read_changed_files(plan: &Plan, layout: &Layout) -> Vec<ChangedFile> {
    let changes = plan.changes().iter().filter(|(path, _)| layout.holds_crd(path));
    // If none of them existed before, e.g. in the first run, don't parse everything that was just
    // generated.
    if changes
        .clone()
        .all(|(_, change)| matches!(change, Change::Create { .. }))
    {
        return Vec::new();
    }
    changes
        .map(|(path, change)| ChangedFile::read(path, change.before(), change.after()))
        .collect()
}
