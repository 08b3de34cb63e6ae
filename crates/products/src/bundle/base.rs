//! The base of the ClusterServiceVersion: a file in which users describe the operator, as in
//! operator-sdk projects.
//!
//! The base takes precedence over what is generated from manifests. For kinds and fields,
//! `#[csv(…)]` in the source takes precedence over the base.

use anyhow::{Result, bail};
use serde_json::Value;

use super::catalog::check_csv_types;
use super::{BUILDER, BundleOptions, LAYOUT, SKIP_RANGE};
use rbuilder_project::plan::Plan;
use rbuilder_project::tree::Tree;
use rbuilder_yaml::{Document, read_documents};

/// Keys of `spec` that come from manifests, the catalog and flags and can't be set in the base.
const MADE: &[&str] = &[
    "customresourcedefinitions",
    "install",
    "relatedImages",
    "replaces",
    "skips",
    "version",
    "webhookdefinitions",
];
/// Same for annotations, which come from the project. The skip range is passed as an option.
const MADE_ANNOTATIONS: &[&str] = &["alm-examples", "containerImage", BUILDER, LAYOUT, SKIP_RANGE];

/// A project's base; empty if there is none.
#[derive(Debug, Default)]
pub struct Base {
    path: String,
    document: Value,
}

impl Base {
    /// Directory of the base.
    pub const FOLDER: &str = "config/manifests/bases/";
    /// Required kind of the document.
    pub const KIND: &str = "ClusterServiceVersion";

    /// Path of a project's base.
    pub fn path(project: &str) -> String {
        format!("{}{project}.clusterserviceversion.yaml", Base::FOLDER)
    }

    /// Reads a project's base with the changes in `plan`.
    ///
    /// # Errors
    /// Fails if the file isn't exactly one ClusterServiceVersion, or if a value doesn't have the
    /// type that the lifecycle manager expects.
    pub fn read(plan: &Plan, tree: &Tree, project: &str) -> Result<Base> {
        let path = Base::path(project);
        let Some(text) = plan.read(tree, &path)? else {
            return Ok(Base::default());
        };
        let mut documents = read_documents(&path, &text)?;
        // Drop empty documents, e.g. after a trailing `---`.
        documents.retain(|document| !document.value.is_null());
        let document = match <[Document; 1]>::try_from(documents) {
            Ok([document]) => document.value,
            Err(documents) => bail!("expected one YAML document in {path}, found {}", documents.len()),
        };
        check_csv_types(&document, &path)?;
        if document["kind"] != Base::KIND {
            let found = document["kind"].as_str().unwrap_or_default();
            bail!("expected a {} in {path}, found `{found}`", Base::KIND);
        }
        Ok(Base { path, document })
    }

    /// Checks a new base before it is written.
    ///
    /// # Errors
    /// Fails if [`read`](Self::read) would reject the document.
    pub fn check(document: &Value, path: &str) -> Result<()> {
        check_csv_types(document, path)
    }

    /// Path of the base, or `None` if there is none.
    pub fn found_path(&self) -> Option<&str> {
        Some(self.path.as_str()).filter(|path| !path.is_empty())
    }

    /// Range of versions that an upgrade skips.
    pub fn skip_range(&self) -> Option<String> {
        let range = self.document["metadata"]["annotations"][SKIP_RANGE].as_str();
        range.filter(|range| !range.is_empty()).map(str::to_owned)
    }

    pub(super) fn owned(&self, crd: &str, version: &str) -> &Value {
        let mut owned = list_owned(&self.document);
        let found = owned.find(|entry| entry["name"] == crd && entry["version"] == version);
        found.unwrap_or(&Value::Null)
    }

    pub(super) fn required(&self) -> impl Iterator<Item = &Value> {
        items(&self.document["spec"]["customresourcedefinitions"]["required"])
    }

    pub(super) fn describe(&self, csv: &mut Value, options: &BundleOptions, converts: bool) {
        let (metadata, spec) = (&self.document["metadata"], &self.document["spec"]);
        for (key, label) in filled(&metadata["labels"], &[]) {
            csv["metadata"]["labels"][key] = label.clone();
        }
        for (key, annotation) in filled(&metadata["annotations"], MADE_ANNOTATIONS) {
            csv["metadata"]["annotations"][key] = annotation.clone();
        }
        let mut made = MADE.to_vec();
        // A conversion webhook only allows one install mode, so ignore the base.
        made.extend(converts.then_some("installModes"));
        // operator-sdk writes an empty icon as a placeholder.
        let has_icon =
            items(&spec["icon"]).any(|icon| icon["base64data"].as_str().is_some_and(|data| !data.is_empty()));
        made.extend((options.icon.is_some() || !has_icon).then_some("icon"));
        for (key, value) in filled(spec, &made) {
            csv["spec"][key] = value.clone();
        }
        if let Some(known) = csv["spec"]["relatedImages"].as_array_mut() {
            for image in items(&spec["relatedImages"]) {
                if known.iter().all(|known| known["name"] != image["name"]) {
                    known.push(image.clone());
                }
            }
        }
    }

    pub(super) fn warn_of_unknown(&self, owned: &[Value], warnings: &mut Vec<(String, String)>) {
        for entry in list_owned(&self.document) {
            let is_same =
                |known: &Value| known["name"] == entry["name"] && known["version"] == entry["version"];
            let name = entry["name"].as_str().unwrap_or_default();
            let version = entry["version"].as_str().unwrap_or_default();
            if !owned.iter().any(is_same) {
                warnings.push((
                    format!("{}: no CRD `{name}` is served in version `{version}`", self.path),
                    "remove the entry, or correct its name and version".to_owned(),
                ));
            }
        }
    }
}

/// Entries of a mapping that are neither empty nor in `made`.
pub(super) fn filled<'a>(from: &'a Value, made: &[&str]) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let keys = from.as_object().into_iter().flatten();
    keys.map(|(key, value)| (key.as_str(), value))
        .filter(move |(key, value)| !made.contains(key) && !is_empty(value))
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The owned CRDs listed in a ClusterServiceVersion.
pub fn list_owned(csv: &Value) -> impl Iterator<Item = &Value> {
    items(&csv["spec"]["customresourcedefinitions"]["owned"])
}

pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
