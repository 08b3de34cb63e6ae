//! Compares CRDs before and after a run, as needed for several warnings.

use rbuilder_generator::{FileRange, KindSummary};
use rbuilder_yaml::parse_documents;
use serde::Deserialize;
use serde_json::Value;

use super::layout::Layout;
use crate::crd_file::without_template;
use crate::plan::{Change, Plan};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Definition {
    pub(super) group: String,
    pub(super) scope: String,
    pub(super) names: Names,
    pub(super) versions: Vec<Version>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Names {
    pub(super) kind: String,
    pub(super) plural: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Version {
    pub(super) name: String,
    pub(super) storage: bool,
    pub(super) schema: Validation,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Validation {
    #[serde(rename = "openAPIV3Schema")]
    pub(super) open_api_v3_schema: Value,
}

impl Definition {
    /// Parses all CRDs in a file. Empty if it isn't valid YAML.
    pub(super) fn read_all(text: &str) -> Vec<Definition> {
        let documents = parse_documents(&without_template(text)).unwrap_or_default();
        let documents = documents.into_iter();
        documents
            .filter_map(|mut crd| serde_json::from_value(crd.get_mut("spec")?.take()).ok())
            .collect()
    }

    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.names.plural, self.group)
    }

    pub(super) fn is_same_crd(&self, other: &Definition) -> bool {
        (&self.group, &self.names.plural) == (&other.group, &other.names.plural)
    }

    /// Location of the kind in the source, or else of the manifest.
    pub(super) fn place(&self, path: &str, kinds: &[KindSummary]) -> FileRange {
        let names = (&self.group, &self.names.plural);
        let kind = kinds.iter().find(|kind| (&kind.group, &kind.plural) == names);
        kind.map_or_else(|| FileRange::new(path, 0..0), |kind| kind.place.clone())
    }
}

pub(super) struct ChangedFile<'p> {
    pub(super) path: &'p str,
    pub(super) before: Vec<Definition>,
    pub(super) after: Vec<Definition>,
}

impl<'p> ChangedFile<'p> {
    pub(super) fn read(path: &'p str, before: &str, after: &str) -> Self {
        ChangedFile {
            path,
            before: Definition::read_all(before),
            after: Definition::read_all(after),
        }
    }

    pub(super) fn kept(&self) -> impl Iterator<Item = (&Definition, &Definition)> {
        let new = |old: &Definition| self.after.iter().find(|new| new.is_same_crd(old));
        self.before.iter().filter_map(move |old| Some((old, new(old)?)))
    }
}

pub(super) fn read_changed_files<'p>(plan: &'p Plan, layout: &Layout) -> Vec<ChangedFile<'p>> {
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
        .map(|(path, change)| ChangedFile::read(path, change.before(), change.after().unwrap_or_default()))
        .collect()
}
