//! A file-based catalog with the bundle.

use rbuilder_generator::yaml;
use serde_json::{Map, Value, json};

use super::BundleOptions;

/// Prints the catalog: the package, its channels and the bundle.
pub(super) fn print_catalog(csv: &Value, options: &BundleOptions, icon: &str) -> String {
    let spec = &csv["spec"];
    let name = &csv["metadata"]["name"];
    let mut documents = vec![json!({
        "schema": "olm.package",
        "name": options.name,
        "defaultChannel": options.channels.first(),
        "description": spec["description"],
        "icon": { "base64data": icon, "mediatype": "image/svg+xml" },
    })];
    for channel in &options.channels {
        let mut entry = Map::from_iter([("name".to_owned(), name.clone())]);
        for key in ["replaces", "skips"] {
            entry.extend(spec.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        let entries = json!([entry]);
        documents.push(
            json!({ "schema": "olm.channel", "package": options.name, "name": channel, "entries": entries }),
        );
    }
    documents.push(json!({
        "schema": "olm.bundle",
        "package": options.name,
        "name": name,
        "image": options.bundle_image,
        "properties": properties(csv, options),
        "relatedImages": related_images(spec, options),
    }));
    documents
        .iter()
        .map(|document| format!("---\n{}", yaml::to_string(document)))
        .collect()
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
