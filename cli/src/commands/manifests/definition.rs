//! The CRDs that a run changes, as they were and as they will be: the matter of several warnings.

use rbuilder_generator::{FileRange, KindSummary};
use serde::Deserialize;
use serde_json::Value;

use super::layout::Layout;
use crate::crd_file::without_template;
use crate::plan::{Change, Plan};
use crate::yaml_stream::parse_documents;

/// The `spec` of a CRD, as far as it is compared.
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
    /// Reads the definitions in a text, without documents that are none; nothing if it is not valid YAML.
    pub(super) fn read_all(text: &str) -> Vec<Definition> {
        let documents = parse_documents(&without_template(text)).unwrap_or_default();
        let documents = documents.into_iter();
        documents
            .filter_map(|mut crd| serde_json::from_value(crd.get_mut("spec")?.take()).ok())
            .collect()
    }

    /// Returns the name of the CRD.
    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.names.plural, self.group)
    }

    /// Returns whether both are of the CRD with the same name.
    pub(super) fn is_same_crd(&self, other: &Definition) -> bool {
        (&self.group, &self.names.plural) == (&other.group, &other.names.plural)
    }

    /// Returns the place of the kind in the source, or else the manifest.
    pub(super) fn place(&self, path: &str, kinds: &[KindSummary]) -> FileRange {
        let names = (&self.group, &self.names.plural);
        let kind = kinds.iter().find(|kind| (&kind.group, &kind.plural) == names);
        kind.map_or_else(|| FileRange::new(path, 0..0), |kind| kind.place.clone())
    }
}

/// A file of CRDs that a plan changes.
pub(super) struct ChangedFile<'p> {
    pub(super) path: &'p str,
    pub(super) before: Vec<Definition>,
    pub(super) after: Vec<Definition>,
}

impl<'p> ChangedFile<'p> {
    /// Reads the text of a file before and after a change.
    pub(super) fn read(path: &'p str, before: &str, after: &str) -> Self {
        ChangedFile {
            path,
            before: Definition::read_all(before),
            after: Definition::read_all(after),
        }
    }

    /// Returns the CRDs that the file has before and after, each as it was and as it will be.
    pub(super) fn kept(&self) -> impl Iterator<Item = (&Definition, &Definition)> {
        let new = |old: &Definition| self.after.iter().find(|new| new.is_same_crd(old));
        self.before.iter().filter_map(move |old| Some((old, new(old)?)))
    }
}

/// Reads the files of CRDs that a plan changes; none if there were no such files before, so that a first run parses nothing of what
/// it has just generated.
pub(super) fn read_changed_files<'p>(plan: &'p Plan, layout: &Layout) -> Vec<ChangedFile<'p>> {
    let changes = plan.changes().iter().filter(|(path, _)| layout.holds_crd(path));
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
