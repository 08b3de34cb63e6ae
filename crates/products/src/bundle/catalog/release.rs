//! Adds a release to a catalog by merging the changed documents into the file.
//!
//! Users edit this file too: they list older versions, describe channels, and remove retired
//! releases. So a release only changes its package, its channels and its bundle. In a channel, the
//! lines of the new entry are inserted above the existing ones. Other documents, e.g. the package,
//! have to be printed again, and are merged. The merge base is the text we last wrote, reduced to
//! entries that are still in the file:
//!
//! ```text
//! last written       file                base                with the release
//! - name: 0.2.0      - name: 0.2.0       - name: 0.2.0       - name: 0.2.0
//!   replaces: 0.1.0    replaces: 0.1.0     replaces: 0.1.0     skips: [0.1.5]
//! - name: 0.1.0        skipRange: …      - name: 0.0.9       - name: 0.0.9
//!                    - name: 0.0.9
//! ```
//!
//! If the base still had `0.1.0`, the user's removal of it would conflict with our change in the
//! line above.

use rbuilder_generator::yaml;
use serde_json::{Value, json};

use super::{BUNDLE, CHANNEL, Catalog, Edge, PACKAGE, package_of};
use crate::bundle::{BundleOptions, SKIP_RANGE};
use rbuilder_project::edit::merge::RebasedChange;
use rbuilder_yaml::Document;

/// Adds a release to a catalog. `csv` is its ClusterServiceVersion with the user's edits, `written`
/// is the catalog as last written by us, and `present` is the current file.
pub fn add_release(
    csv: &Value,
    options: &BundleOptions,
    written: &Catalog,
    present: &Catalog,
) -> RebasedChange {
    let release = Release::new(csv, options, present);
    let in_base = |document: &Document| {
        // The merge normalizes line endings, so CRs don't matter here.
        let document = Document {
            text: document.text.replace("\r\n", "\n"),
            ..document.clone()
        };
        match release.rewrites(&document) {
            true => align(&document, written),
            false => document,
        }
    };
    let base: Vec<Document> = present.documents.iter().map(in_base).collect();
    let written = written.documents.iter().map(|document| document.value.clone());
    RebasedChange {
        theirs: release.add_to(base.clone()),
        base: join(&base),
        written: release.add_to(written.map(print_document).collect()),
    }
}

fn join(documents: &[Document]) -> String {
    documents.iter().map(|document| document.text.as_str()).collect()
}

fn print_document(value: Value) -> Document {
    Document {
        line: 0,
        text: format!("---\n{}", yaml::to_string(&value)),
        value,
    }
}

/// A document as last written by us, but with the channel entries of the current file, because
/// users add and remove some. A channel that we never wrote is its own base. If it has comments, it
/// is printed again, so that the merge notices that they would be lost.
fn align(document: &Document, written: &Catalog) -> Document {
    let present = &document.value;
    let is_same = |value: &&Value| {
        let keys = ["schema", "package", "name"];
        keys.iter().all(|key| value[*key] == present[*key])
    };
    let mut documents = written.documents.iter().map(|document| &document.value);
    let Some(found) = documents.find(is_same) else {
        return match present["schema"] == CHANNEL && !document.text.contains('#') {
            true => document.clone(),
            false => print_document(present.clone()),
        };
    };
    let mut aligned = found.clone();
    if let Some(entries) = present["entries"].as_array() {
        let written = found["entries"].as_array().map_or(&[] as &[Value], Vec::as_slice);
        let entry = |entry: &Value| {
            let same = written.iter().find(|other| other["name"] == entry["name"]);
            same.unwrap_or(entry).clone()
        };
        aligned["entries"] = entries.iter().map(entry).collect();
    }
    print_document(aligned)
}

struct Release<'a> {
    package: Value,
    entries: Vec<(&'a str, Value)>,
    bundle: Value,
}

impl<'a> Release<'a> {
    fn new(csv: &Value, options: &'a BundleOptions, present: &Catalog) -> Self {
        let spec = &csv["spec"];
        let mut package = json!({
            "schema": PACKAGE,
            "name": options.name,
            "defaultChannel": options.default_channel,
        });
        for (key, value) in [("description", &spec["description"]), ("icon", &spec["icon"][0])] {
            if !value.is_null() {
                package[key] = value.clone();
            }
        }
        let edges = present.find_edges(replaced_by(csv), options).into_iter();
        Release {
            package,
            entries: edges
                .map(|Edge { channel, replaced }| (channel, channel_entry(csv, replaced)))
                .collect(),
            bundle: json!({
                "schema": BUNDLE,
                "package": options.name,
                "name": csv["metadata"]["name"],
                "image": options.bundle_image,
                "properties": properties(csv, options),
                "relatedImages": related_images(spec, options),
            }),
        }
    }

    fn rewrites(&self, document: &Document) -> bool {
        let value = &document.value;
        if package_of(value) != self.package["name"].as_str() {
            return false;
        }
        let name = &value["name"];
        match value["schema"].as_str() {
            Some(PACKAGE) => true,
            Some(CHANNEL) => {
                let mut entries = self.entries.iter();
                let entry = entries.find(|(channel, _)| name == channel);
                // If only the entry is missing, it can be inserted as lines.
                entry.is_some_and(|(_, entry)| insert_entry(document, entry).is_none())
            }
            Some(BUNDLE) => *name == self.bundle["name"],
            _ => false,
        }
    }

    fn add_to(&self, mut documents: Vec<Document>) -> String {
        let package = &self.package["name"];
        let find = |documents: &[Document], schema: &str, name: Option<&Value>| {
            documents.iter().position(|document| {
                let value = &document.value;
                value["schema"] == schema
                    && package_of(value) == package.as_str()
                    && name.is_none_or(|name| value["name"] == *name)
            })
        };
        match find(&documents, PACKAGE, None) {
            Some(at) => documents[at] = print_document(self.package.clone()),
            None => documents.insert(0, print_document(self.package.clone())),
        }
        let below_package = |documents: &[Document]| find(documents, PACKAGE, None).map_or(0, |at| at + 1);
        for (channel, entry) in &self.entries {
            let name = json!(channel);
            match find(&documents, CHANNEL, Some(&name)) {
                Some(at) => {
                    let document = &documents[at];
                    documents[at] = insert_entry(document, entry)
                        .unwrap_or_else(|| print_document(with_entry(&document.value, entry)));
                }
                None => {
                    let new =
                        json!({ "schema": CHANNEL, "package": package, "name": channel, "entries": [entry] });
                    let at = find(&documents, CHANNEL, None).unwrap_or_else(|| below_package(&documents));
                    documents.insert(at, print_document(new));
                }
            }
        }
        let bundle = print_document(self.bundle.clone());
        match find(&documents, BUNDLE, Some(&self.bundle["name"])) {
            Some(at) => documents[at] = bundle,
            None => {
                let last_channel = documents.iter().rposition(|document| {
                    document.value["schema"] == CHANNEL && document.value["package"] == *package
                });
                let at = find(&documents, BUNDLE, None)
                    .or(last_channel.map(|at| at + 1))
                    .unwrap_or(documents.len());
                documents.insert(at, bundle);
            }
        }
        join(&documents)
    }
}

fn with_entry(channel: &Value, new: &Value) -> Value {
    let mut entries = channel["entries"].as_array().cloned().unwrap_or_default();
    match entries.iter_mut().find(|entry| entry["name"] == new["name"]) {
        Some(entry) => *entry = new.clone(),
        None => entries.insert(0, new.clone()),
    }
    let mut channel = channel.clone();
    channel["entries"] = entries.into();
    channel
}

/// Inserts the lines of an entry above the first one. Returns `None` if the channel already has the
/// entry, or if its entries aren't a block list.
fn insert_entry(channel: &Document, new: &Value) -> Option<Document> {
    let entries = channel.value["entries"].as_array()?;
    if entries.iter().any(|entry| entry["name"] == new["name"]) {
        return None;
    }
    let mut lines = channel.text.split_inclusive('\n');
    let mut text = String::new();
    loop {
        let line = lines.next()?;
        text.push_str(line);
        let rest = line.strip_prefix("entries:").map(str::trim_start);
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#')) {
            break;
        }
    }
    let below: String = lines.collect();
    let first = below.lines().find(|line| line.trim_start().starts_with('-'))?;
    let indent = &first[..first.len() - first.trim_start().len()];
    for line in yaml::to_string(&json!([new])).lines() {
        text.push_str(&format!("{indent}{line}\n"));
    }
    text.push_str(&below);
    let value = with_entry(&channel.value, new);
    // The supposed list may be part of a string, so check the result.
    let is_right = rbuilder_yaml::parse::<Value>(&text).is_ok_and(|parsed| parsed == value);
    is_right.then_some(Document {
        line: channel.line,
        text,
        value,
    })
}

pub(super) fn replaced_by(csv: &Value) -> Option<&str> {
    csv["spec"]["replaces"].as_str().filter(|name| !name.is_empty())
}

fn channel_entry(csv: &Value, replaced: Option<String>) -> Value {
    let mut entry = json!({ "name": csv["metadata"]["name"] });
    if let Some(replaced) = replaced {
        entry["replaces"] = json!(replaced);
    }
    let annotations = &csv["metadata"]["annotations"];
    for (key, value) in [
        ("skips", &csv["spec"]["skips"]),
        ("skipRange", &annotations[SKIP_RANGE]),
    ] {
        if !value.is_null() {
            entry[key] = value.clone();
        }
    }
    entry
}

fn properties(csv: &Value, options: &BundleOptions) -> Vec<Value> {
    let spec = &csv["spec"];
    let mut properties = vec![json!({
        "type": "olm.package",
        "value": { "packageName": options.name, "version": options.version },
    })];
    for (key, property) in [("owned", "olm.gvk"), ("required", "olm.gvk.required")] {
        let crds = spec["customresourcedefinitions"][key].as_array();
        for crd in crds.into_iter().flatten() {
            let name = crd["name"].as_str().unwrap_or_default();
            let (_, group) = name.split_once('.').unwrap_or_default();
            let value = json!({ "group": group, "version": crd["version"], "kind": crd["kind"] });
            properties.push(json!({ "type": property, "value": value }));
        }
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
