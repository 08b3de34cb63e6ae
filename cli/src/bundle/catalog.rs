//! A file-based catalog with the bundle, and with those of earlier releases.

use anyhow::{Context as _, Result};
use rbuilder_generator::yaml;
use serde_json::{Map, Value, json};

use super::BundleOptions;
use crate::yaml_stream::parse_documents;

const PACKAGE: &str = "olm.package";
const CHANNEL: &str = "olm.channel";
const BUNDLE: &str = "olm.bundle";

/// A catalog; empty before the first release.
#[derive(Debug, Default)]
pub(crate) struct Catalog(Vec<Value>);

impl Catalog {
    /// Path of the catalog of a package.
    pub(crate) fn path(package: &str) -> String {
        format!("catalog/{package}/catalog.yaml")
    }

    /// Reads the text of the catalog of a package.
    ///
    /// # Errors
    /// Fails if it is not YAML, since its releases would be lost.
    pub(crate) fn parse(package: &str, text: &str) -> Result<Catalog> {
        let documents = parse_documents(text).with_context(|| {
            format!(
                "expected YAML in {}, which lists earlier releases",
                Catalog::path(package)
            )
        })?;
        Ok(Catalog(documents))
    }

    /// Returns the version that a release replaces: what its entry in a channel says, or else the one version of the channel
    /// that no other replaces or skips, those aside that the release itself skips. Without an edge to it, the channel would
    /// have two ends, which the lifecycle manager refuses.
    pub(crate) fn find_replaced(&self, options: &BundleOptions) -> Option<String> {
        let own = options.csv_name(&options.version);
        let channel = self.named(CHANNEL, options.channels.first()?)?;
        let skipped: Vec<String> = options
            .skips
            .iter()
            .map(|version| options.csv_name(version))
            .collect();
        let is_left = |entry: &&Value| !skipped.iter().any(|name| entry["name"] == **name);
        let entries = || {
            let all = channel["entries"].as_array().into_iter().flatten();
            all.filter(is_left)
        };
        let version_of = |name: &Value| {
            let version = name.as_str()?.strip_prefix(&options.csv_name(""))?;
            Some(version.to_owned())
        };
        if let Some(entry) = entries().find(|entry| entry["name"] == own) {
            return version_of(&entry["replaces"]);
        }
        let is_passed = |name: &Value| {
            entries().any(|entry| {
                let mut skips = entry["skips"].as_array().into_iter().flatten();
                entry["replaces"] == *name || skips.any(|skipped| skipped == name)
            })
        };
        let mut ends = entries()
            .map(|entry| &entry["name"])
            .filter(|name| !is_passed(name));
        let end = ends.next()?;
        ends.next().is_none().then(|| version_of(end)).flatten()
    }

    /// Returns the document of a schema and a name.
    fn named(&self, schema: &str, name: &str) -> Option<&Value> {
        let mut documents = self.of_schema(schema);
        documents.find(|document| document["name"] == name)
    }

    fn of_schema(&self, schema: &str) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |document| document["schema"] == schema)
    }
}

/// Prints the catalog: the package, its channels, the bundles, and what else people have added.
pub(super) fn print_catalog(csv: &Value, options: &BundleOptions, icon: &str, earlier: &Catalog) -> String {
    let spec = &csv["spec"];
    let name = &csv["metadata"]["name"];
    let mut documents = vec![json!({
        "schema": PACKAGE,
        "name": options.name,
        "defaultChannel": options.channels.first(),
        "description": spec["description"],
        "icon": { "base64data": icon, "mediatype": "image/svg+xml" },
    })];
    let mut entry = Map::from_iter([("name".to_owned(), name.clone())]);
    for key in ["replaces", "skips"] {
        entry.extend(spec.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    let mut channels: Vec<Value> = earlier.of_schema(CHANNEL).cloned().collect();
    for channel in &options.channels {
        let new = json!({ "schema": CHANNEL, "package": options.name, "name": channel });
        let mut document = earlier.named(CHANNEL, channel).cloned().unwrap_or(new);
        let entries = document["entries"].as_array().cloned().unwrap_or_default();
        document["entries"] = put(entries, entry.clone().into()).into();
        channels = put(channels, document);
    }
    documents.extend(channels);
    let bundle = json!({
        "schema": BUNDLE,
        "package": options.name,
        "name": name,
        "image": options.bundle_image,
        "properties": properties(csv, options),
        "relatedImages": related_images(spec, options),
    });
    documents.extend(put(earlier.of_schema(BUNDLE).cloned().collect(), bundle));
    let is_known = |document: &&Value| {
        [PACKAGE, CHANNEL, BUNDLE]
            .iter()
            .any(|schema| document["schema"] == *schema)
    };
    documents.extend(earlier.0.iter().filter(|document| !is_known(document)).cloned());
    documents
        .iter()
        .map(|document| format!("---\n{}", yaml::to_string(document)))
        .collect()
}

/// Puts a value in the place of the one with its name, or first: a merge takes lines that follow the changes of people for
/// a conflict with these, and people add to an entry at its end.
fn put(mut values: Vec<Value>, new: Value) -> Vec<Value> {
    match values.iter_mut().find(|value| value["name"] == new["name"]) {
        Some(value) => *value = new,
        None => values.insert(0, new),
    }
    values
}

fn properties(csv: &Value, options: &BundleOptions) -> Vec<Value> {
    let spec = &csv["spec"];
    let mut properties = vec![json!({
        "type": "olm.package",
        "value": { "packageName": options.name, "version": options.version },
    })];
    for owned in spec["customresourcedefinitions"]["owned"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let name = owned["name"].as_str().unwrap_or_default();
        let (_, group) = name.split_once('.').unwrap_or_default();
        let value = json!({ "group": group, "version": owned["version"], "kind": owned["kind"] });
        properties.push(json!({ "type": "olm.gvk", "value": value }));
    }
    let mut metadata = json!({ "annotations": csv["metadata"]["annotations"] });
    metadata["crdDescriptions"] = spec["customresourcedefinitions"].clone();
    for key in [
        "displayName",
        "description",
        "installModes",
        "keywords",
        "maintainers",
        "maturity",
        "minKubeVersion",
        "provider",
    ] {
        if let Some(value) = spec.get(key) {
            metadata[key] = value.clone();
        }
    }
    properties.push(json!({ "type": "olm.csv.metadata", "value": metadata }));
    properties
}

fn related_images(spec: &Value, options: &BundleOptions) -> Vec<Value> {
    let mut images = spec["relatedImages"].as_array().cloned().unwrap_or_default();
    images.insert(0, json!({ "name": "", "image": options.bundle_image }));
    images
}
