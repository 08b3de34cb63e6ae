//! Converts definitions to Rust and back.

#![allow(unreachable_pub)] // an example includes this file as well

use rbuilder_generator::{Options, Product, Severity, SourceSet, generate};
use rbuilder_importer::{Imported, Minor, import_definitions};
use serde_json::{Map, Value, json};

/// The manifest of the package that contains the types.
pub const CARGO_TOML: &str = r#"[package]
name = "imported"
edition = "2024"

[dependencies]
k8s-openapi = { version = "0.29", features = ["latest"] }
kube = "5"
rbuilder = { package = "rbuilder-runtime", version = "0.1" }
serde = "1"
serde_json = "1"
"#;

/// The result of importing definitions and generating them again.
#[derive(Default)]
pub struct RoundTrip {
    /// The generated source.
    pub imported: Imported,
    /// The generator's diagnostics, errors first.
    pub messages: Vec<String>,
    /// The paths at which a definition differs, with both values.
    pub differences: Vec<String>,
}

impl RoundTrip {
    pub fn of(documents: &[Value]) -> RoundTrip {
        let imported = import_definitions(documents, Minor::LATEST, true);
        let mut sources = SourceSet::default();
        sources.insert("Cargo.toml", CARGO_TOML);
        sources.insert("src/lib.rs", "pub mod api;\n");
        for file in &imported.files {
            sources.insert(format!("src/api/{}", file.path), file.text.as_str());
        }
        for folder in &imported.folders {
            let path = format!("src/api/{}/mod.rs", folder.path).replace("//", "/");
            sources.insert(path, folder.text.as_str());
        }
        let options = Options {
            products: vec![Product::Crds],
            // The generator skips kinds of well-known groups unless they are selected.
            kinds: documents
                .iter()
                .filter_map(|document| Some(format!("*.{}", document["spec"]["group"].as_str()?)))
                .collect(),
            ..Options::default()
        };
        let made = generate(&sources, &options);
        let mut messages = Vec::new();
        for diagnostic in &made.diagnostics {
            let help = diagnostic.help.as_deref().unwrap_or_default();
            let place = &diagnostic.place;
            let text = sources.get(&place.path).unwrap_or_default();
            let line = text[..place.range.start.min(text.len())].matches('\n').count() + 1;
            let severity = match diagnostic.severity {
                Severity::Error => "error",
                _ => "warning",
            };
            messages.push(format!(
                "{severity}: {} ({}:{line}; {help})",
                diagnostic.message, place.path
            ));
        }
        messages.sort();
        let generated: Vec<Value> = made
            .files
            .iter()
            .map(|file| serde_saphyr::from_str(&file.text).expect("YAML"))
            .collect();
        let mut differences = Vec::new();
        for document in documents {
            let name = &document["metadata"]["name"];
            let Some(found) = generated.iter().find(|found| &found["metadata"]["name"] == name) else {
                differences.push(format!("{name}: not generated"));
                continue;
            };
            compare(
                &normal(document),
                &normal(found),
                name.as_str().unwrap_or_default(),
                &mut differences,
            );
        }
        RoundTrip {
            imported,
            messages,
            differences,
        }
    }
}
/// Adds what the API server would default, and removes what it replaces or ignores.
pub fn normal(definition: &Value) -> Value {
    let mut spec = definition["spec"].clone();
    let metadata = json!({
        "name": definition["metadata"]["name"],
        "annotations": own_annotations(&definition["metadata"]["annotations"]),
        "labels": non_empty(&definition["metadata"]["labels"]),
    });
    let Some(keys) = spec.as_object_mut() else {
        return json!({ "metadata": metadata });
    };
    // A setting of `v1beta1`. `v1` only allows `false`.
    keys.remove("preserveUnknownFields");
    if keys
        .get("conversion")
        .is_some_and(|conversion| conversion["strategy"] == "None")
    {
        keys.remove("conversion");
    }
    if let Some(service) = keys
        .get_mut("conversion")
        .and_then(|conversion| conversion.pointer_mut("/webhook/clientConfig/service"))
        .and_then(Value::as_object_mut)
    {
        service.entry("path").or_insert("/".into());
    }
    let kind = keys["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if let Some(names) = keys.get_mut("names").and_then(Value::as_object_mut) {
        names
            .entry("singular")
            .or_insert_with(|| kind.to_ascii_lowercase().into());
        names
            .entry("listKind")
            .or_insert_with(|| format!("{kind}List").into());
        names.retain(|_, value| *value != json!([]));
        if names["singular"] == "" {
            names.insert("singular".into(), kind.to_ascii_lowercase().into());
        }
    }
    if let Some(versions) = keys.get_mut("versions").and_then(Value::as_array_mut) {
        versions.sort_by_key(|version| version["name"].to_string());
        versions.iter_mut().for_each(normalize_version);
    }
    json!({ "metadata": metadata, "spec": spec })
}

fn own_annotations(annotations: &Value) -> Value {
    let mut own: Map<String, Value> = annotations.as_object().cloned().unwrap_or_default();
    for key in [
        "controller-gen.kubebuilder.io/version",
        "kubectl.kubernetes.io/last-applied-configuration",
        "rbuilder.dev/version",
    ] {
        own.remove(key);
    }
    non_empty(&own.into())
}

fn non_empty(map: &Value) -> Value {
    if map.as_object().is_some_and(|map| map.is_empty()) {
        Value::Null
    } else {
        map.clone()
    }
}

fn normalize_version(version: &mut Value) {
    let Some(keys) = version.as_object_mut() else {
        return;
    };
    keys.retain(|key, value| {
        !(value == &json!([]) || value.is_null() || (key == "deprecated" && value == &json!(false)))
    });
    keys.entry("served").or_insert(true.into());
    keys.entry("storage").or_insert(true.into());
    if keys.get("subresources") == Some(&json!({})) {
        keys.remove("subresources");
    }
    if let Some(scale) = keys
        .get_mut("subresources")
        .and_then(|all| all.get_mut("scale"))
        .and_then(Value::as_object_mut)
    {
        scale.retain(|_, path| path != "");
    }
    for column in keys
        .get_mut("additionalPrinterColumns")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(column) = column.as_object_mut() {
            column.retain(|key, value| !((key == "priority" && value == 0) || value == ""));
        }
    }
    let Some(root) = version.pointer_mut("/schema/openAPIV3Schema") else {
        return;
    };
    normalize_schema(root);
    if root.get("type").is_none() {
        root["type"] = "object".into();
    }
    let Some(properties) = root
        .as_object_mut()
        .map(|root| root.entry("properties").or_insert(json!({})))
    else {
        return;
    };
    // The API server replaces the descriptions of these fields.
    for (name, of_type) in [
        ("apiVersion", "string"),
        ("kind", "string"),
        ("metadata", "object"),
    ] {
        if let Some(property) = properties
            .as_object_mut()
            .map(|all| all.entry(name).or_insert(json!({})))
        {
            property["type"] = of_type.into();
            property
                .as_object_mut()
                .map(|property| property.remove("description"));
        }
    }
}

/// Removes keys that have their default value.
fn normalize_schema(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            let free = ["default", "example", "enum"];
            keys.retain(|key, value| {
                free.contains(&key.as_str())
                    || !(value.is_null()
                        || value == &json!(false)
                        || value == &json!([])
                        || (value == &json!({}) && key == "properties")
                        || (value == &json!("")
                            && ["description", "format", "pattern", "title"].contains(&key.as_str())))
            });
            if let Some(required) = keys.get_mut("required").and_then(Value::as_array_mut) {
                required.sort_by_key(Value::to_string);
                required.dedup();
            }
            for (key, value) in keys.iter_mut() {
                match (key.as_str(), &mut *value) {
                    ("properties", Value::Object(properties)) => {
                        properties.values_mut().for_each(normalize_schema)
                    }
                    (key, value) if !free.contains(&key) => normalize_schema(value),
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize_schema),
        _ => {}
    }
}

fn compare(first: &Value, second: &Value, path: &str, differences: &mut Vec<String>) {
    match (first, second) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let (a, b) = (
                    a.get(key).unwrap_or(&Value::Null),
                    b.get(key).unwrap_or(&Value::Null),
                );
                compare(a, b, &format!("{path}.{key}"), differences);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                compare(a, b, &format!("{path}[{at}]"), differences);
            }
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => {}
        (a, b) if a == b => {}
        (a, b) => {
            let brief = |value: &Value| value.to_string().chars().take(160).collect::<String>();
            differences.push(format!("{path}: {} became {}", brief(a), brief(b)));
        }
    }
}
