//! The base of the ClusterServiceVersion: what people say about the operator, in a file of its own, as operator-sdk keeps it.
//!
//! It stands between what is made of the manifests and `#[csv(…)]` in the source: it says more than the first, and the second
//! says more of a kind or of a field.

use anyhow::{Result, bail};
use serde_json::Value;

use super::catalog::check_csv_types;
use super::{BUILDER, BundleOptions, LAYOUT, SKIP_RANGE};
use crate::plan::Plan;
use crate::tree::Tree;
use crate::yaml_stream::{Document, read_documents};

/// Keys of `spec` that the manifests, the catalog and flags decide.
const MADE: &[&str] = &[
    "customresourcedefinitions",
    "install",
    "relatedImages",
    "replaces",
    "skips",
    "version",
    "webhookdefinitions",
];
/// Annotations that the project decides. The range of versions that an upgrade skips comes in as an option.
const MADE_ANNOTATIONS: &[&str] = &["alm-examples", "containerImage", BUILDER, LAYOUT, SKIP_RANGE];

/// The base; an empty one if the project has none.
#[derive(Debug, Default)]
pub(crate) struct Base {
    path: String,
    document: Value,
}

impl Base {
    /// Directory of the base.
    pub(crate) const FOLDER: &str = "config/manifests/bases/";
    /// Kind of the document.
    pub(crate) const KIND: &str = "ClusterServiceVersion";

    /// Returns the path of the base of a project.
    pub(crate) fn path(project: &str) -> String {
        format!("{}{project}.clusterserviceversion.yaml", Base::FOLDER)
    }

    /// Reads the base of a project as it is after a plan.
    ///
    /// # Errors
    /// Fails if it is not one ClusterServiceVersion, or has a value of another type than the lifecycle manager reads.
    pub(crate) fn read(plan: &Plan, tree: &Tree, project: &str) -> Result<Base> {
        let path = Base::path(project);
        let Some(text) = plan.read(tree, &path)? else {
            return Ok(Base::default());
        };
        let mut documents = read_documents(&path, &text)?;
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

    /// Checks a document that is to be the base at a path.
    ///
    /// # Errors
    /// Fails if it has a value that [`read`](Self::read) rejects.
    pub(crate) fn check(document: &Value, path: &str) -> Result<()> {
        check_csv_types(document, path)
    }

    /// Returns the path of the base; nothing if the project has none.
    pub(crate) fn found_path(&self) -> Option<&str> {
        Some(self.path.as_str()).filter(|path| !path.is_empty())
    }

    /// Returns the range of versions that an upgrade skips.
    pub(crate) fn skip_range(&self) -> Option<String> {
        let range = self.document["metadata"]["annotations"][SKIP_RANGE].as_str();
        range.filter(|range| !range.is_empty()).map(str::to_owned)
    }

    /// Returns the description of a version of a kind, by the name of its CRD; null if there is none.
    pub(super) fn owned(&self, crd: &Value, version: &Value) -> &Value {
        let found =
            list_owned(&self.document).find(|entry| entry["name"] == *crd && entry["version"] == *version);
        found.unwrap_or(&Value::Null)
    }

    /// Returns the CRDs of others that have to be installed.
    pub(super) fn required(&self) -> impl Iterator<Item = &Value> {
        items(&self.document["spec"]["customresourcedefinitions"]["required"])
    }

    /// Writes into a ClusterServiceVersion what the base says about the operator. With a conversion the install modes stay: there is
    /// one only.
    pub(super) fn describe(&self, csv: &mut Value, options: &BundleOptions, converts: bool) {
        let (metadata, spec) = (&self.document["metadata"], &self.document["spec"]);
        for (key, label) in filled(&metadata["labels"], &[]) {
            csv["metadata"]["labels"][key] = label.clone();
        }
        for (key, annotation) in filled(&metadata["annotations"], MADE_ANNOTATIONS) {
            csv["metadata"]["annotations"][key] = annotation.clone();
        }
        let mut made = MADE.to_vec();
        made.extend(converts.then_some("installModes"));
        // operator-sdk writes an empty icon until there is one.
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

    /// Warns of descriptions that nothing in the project has.
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

/// Returns the keys of a mapping that have a value and are not `made` of the project.
pub(super) fn filled<'a>(from: &'a Value, made: &[&str]) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let keys = from.as_object().into_iter().flatten();
    keys.map(|(key, value)| (key.as_str(), value))
        .filter(move |(key, value)| !made.contains(key) && !is_empty(value))
}

/// Returns whether a value is as good as absent.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns the entries of the kinds that the operator owns in a ClusterServiceVersion.
pub(crate) fn list_owned(csv: &Value) -> impl Iterator<Item = &Value> {
    items(&csv["spec"]["customresourcedefinitions"]["owned"])
}

/// Returns the items of a list; none if there is no list.
pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
