//! CRDs before and after a run, as needed for several warnings.

use rbuilder_generator::{FileRange, KindSummary};
use rbuilder_importer::is_definition;
use rbuilder_yaml::{list_items, parse_documents};
use serde_json::Value;

use super::layout::Layout;
use crate::crd_file::without_template;
use crate::plan::{Change, Plan};

/// The names and versions of a CRD. Values of a wrong type count as missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition<'v> {
    spec: &'v Value,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Version<'v> {
    pub(super) name: &'v str,
    pub(super) storage: bool,
    pub(super) schema: &'v Value,
}

impl<'v> Definition<'v> {
    pub(super) fn list(objects: &'v [Value]) -> impl Iterator<Item = Definition<'v>> {
        let crds = objects.iter().filter(|object| is_definition(object));
        crds.map(|crd| Definition { spec: &crd["spec"] })
    }

    pub(super) fn group(self) -> &'v str {
        text(&self.spec["group"])
    }

    pub(super) fn scope(self) -> &'v str {
        text(&self.spec["scope"])
    }

    pub(super) fn kind(self) -> &'v str {
        text(&self.spec["names"]["kind"])
    }

    pub(super) fn plural(self) -> &'v str {
        text(&self.spec["names"]["plural"])
    }

    pub(super) fn name(self) -> String {
        format!("{}.{}", self.plural(), self.group())
    }

    pub(super) fn versions(self) -> impl Iterator<Item = Version<'v>> {
        let versions = self.spec["versions"].as_array().into_iter().flatten();
        versions.map(|version| Version {
            name: text(&version["name"]),
            storage: version["storage"] == true,
            schema: &version["schema"]["openAPIV3Schema"],
        })
    }

    pub(super) fn is_same_crd(self, other: Definition<'_>) -> bool {
        (self.group(), self.plural()) == (other.group(), other.plural())
    }

    /// Location of the kind in the source, or else of the manifest.
    pub(super) fn place(self, path: &str, kinds: &[KindSummary]) -> FileRange {
        let names = (self.group(), self.plural());
        let mut kinds = kinds.iter();
        let kind = kinds.find(|kind| (kind.group.as_str(), kind.plural.as_str()) == names);
        kind.map_or_else(|| FileRange::new(path, 0..0), |kind| kind.place.clone())
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
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
    pub(super) fn kept(&self) -> impl Iterator<Item = (Definition<'_>, Definition<'_>)> {
        let new = |old| Definition::list(&self.after).find(|new| new.is_same_crd(old));
        Definition::list(&self.before).filter_map(move |old| Some((old, new(old)?)))
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
