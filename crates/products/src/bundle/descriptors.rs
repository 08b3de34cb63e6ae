//! Descriptors of fields, which consoles render as forms. Derived from the schema and from
//! `#[csv(…)]` in the source.

use std::collections::BTreeMap;

use rbuilder_generator::{Descriptor, fits_descriptor_path};
use serde_json::{Value, json};

use super::base::{filled, items};

const UI: &str = "urn:alm:descriptor:com.tectonic.ui";

/// Describes the fields of `spec` or `status`. All direct fields get a descriptor; nested fields
/// only if they are in the base or have a marker. Ordered as specified in the source, then by path.
pub(super) fn describe_fields(
    schema: &Value,
    part: &str,
    base: &Value,
    marked: &[(String, Descriptor)],
) -> Vec<Value> {
    let root = &schema["properties"][part];
    let fields = root["properties"].as_object().into_iter().flatten();
    let mut descriptors: BTreeMap<&str, (u64, Value)> = fields
        .filter(|(name, _)| fits_descriptor_path(name))
        .map(|(name, field)| (name.as_str(), (u64::MAX, describe(name, field, part))))
        .collect();
    // Skip unknown paths: the base is written by hand, and with `--manifests=false` the manifests
    // may be older than the source.
    let known = |path: &&str| !find_field(root, path).is_null();
    let described = |path: &str| (u64::MAX, describe(path, find_field(root, path), part));
    for entry in items(base) {
        if let Some(path) = entry["path"].as_str().filter(known) {
            let (_, descriptor) = descriptors.entry(path).or_insert_with(|| described(path));
            for (key, value) in filled(entry, &["path"]) {
                descriptor[key] = value.clone();
            }
        }
    }
    for (path, marker) in marked.iter().filter(|(path, _)| known(&path.as_str())) {
        let (order, descriptor) = descriptors.entry(path).or_insert_with(|| described(path));
        *order = marker.order.unwrap_or(*order);
        apply_marker(descriptor, marker);
    }
    for (skipped, _) in marked.iter().filter(|(_, marker)| marker.skip) {
        descriptors.retain(|path, _| !is_at_or_below(path, skipped));
    }
    let mut descriptors: Vec<_> = descriptors.into_iter().collect();
    descriptors.sort_by_key(|(path, (order, _))| (*order, *path));
    descriptors
        .into_iter()
        .map(|(_, (_, descriptor))| descriptor)
        .collect()
}

pub(super) fn is_at_or_below(path: &str, field: &str) -> bool {
    path.strip_prefix(field)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

pub(super) fn find_field<'a>(root: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(root, |schema, segment| {
        let name = segment.trim_end_matches("[0]");
        let lists = (segment.len() - name.len()) / "[0]".len();
        (0..lists).fold(&schema["properties"][name], |field, _| &field["items"])
    })
}

fn apply_marker(descriptor: &mut Value, marker: &Descriptor) {
    for (key, text) in [
        ("displayName", &marker.display_name),
        ("description", &marker.description),
    ] {
        if let Some(text) = text {
            descriptor[key] = json!(text);
        }
    }
    if !marker.x_descriptors.is_empty() {
        descriptor["x-descriptors"] = json!(marker.x_descriptors);
    }
}

pub(super) fn describe(path: &str, field: &Value, part: &str) -> Value {
    let name = path.rsplit('.').next().unwrap_or(path).trim_end_matches("[0]");
    let mut descriptor = json!({ "path": path, "displayName": split_humps(name) });
    if let Some(text) = field["description"].as_str().filter(|text| !text.is_empty()) {
        descriptor["description"] = json!(text);
    }
    let hints = hints(name, field, part);
    if !hints.is_empty() {
        descriptor["x-descriptors"] = json!(hints);
    }
    descriptor
}

fn hints(name: &str, field: &Value, part: &str) -> Vec<String> {
    let ui = |control: &str| vec![format!("{UI}:{control}")];
    let has = |key: &str| field["properties"].get(key).is_some();
    let is_status = part == "status";
    match field["type"].as_str() {
        Some("array") if is_status && name == "conditions" => {
            vec!["urn:alm:descriptor:io.kubernetes.conditions".to_owned()]
        }
        _ if is_status => Vec::new(),
        Some("integer") if name == "replicas" => ui("podCount"),
        Some("integer" | "number") => ui("number"),
        Some("boolean") => ui("booleanSwitch"),
        Some("string") => match field["enum"].as_array() {
            Some(values) => {
                let values = values.iter().filter_map(Value::as_str);
                values.map(|value| format!("{UI}:select:{value}")).collect()
            }
            None => ui("text"),
        },
        Some("object") if has("limits") && has("requests") => ui("resourceRequirements"),
        _ => Vec::new(),
    }
}

/// Splits a camel-case name into words: `containerPort` becomes `Container Port`. Runs of capitals
/// stay together.
pub(super) fn split_humps(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (at, char) in chars.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| chars.get(at));
        let after = chars.get(at + 1);
        let begins = char.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_numeric()
                    || after.is_some_and(|after| after.is_lowercase())
            });
        if begins && before.is_some_and(|before| *before != ' ') {
            out.push(' ');
        }
        match (at, char) {
            (0, char) => out.extend(char.to_uppercase()),
            (_, '-' | '_') => out.push(' '),
            (_, char) => out.push(*char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        for (name, expected) in [
            ("containerPort", "Container Port"),
            ("CronJob", "Cron Job"),
            ("HTTPRoute", "HTTP Route"),
            ("podCIDR", "Pod CIDR"),
            ("size", "Size"),
            ("memcached-operator", "Memcached operator"),
        ] {
            assert_eq!(split_humps(name), expected);
        }
    }

    #[test]
    fn skipped_or_absent_fields_have_no_descriptor() {
        let schema = json!({ "properties": { "spec": { "properties": {
            "pods": { "type": "array", "items": { "properties": { "size": { "type": "integer" } } } },
            "podsSize": { "type": "integer" },
            "pods.size": { "type": "integer" },
            "podsSize[0]": { "type": "integer" },
        } } } });
        let marked = |skipped: bool| {
            let pods = Descriptor {
                skip: skipped,
                ..Descriptor::default()
            };
            let size = Descriptor::default();
            [
                ("pods".to_owned(), pods),
                ("pods[0].size".to_owned(), size.clone()),
                ("pods[0].gone".to_owned(), size.clone()),
                ("gone".to_owned(), size),
            ]
        };
        let paths = |skipped: bool| {
            let described = describe_fields(&schema, "spec", &Value::Null, &marked(skipped));
            let paths = described
                .iter()
                .filter_map(|descriptor| descriptor["path"].as_str());
            paths.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(paths(false), ["pods", "podsSize", "pods[0].size"]);
        assert_eq!(paths(true), ["podsSize"]);
    }

    #[test]
    fn fields_have_the_controls_of_their_types() {
        let schema = json!({ "properties": {
            "spec": { "properties": {
                "replicas": { "type": "integer", "description": "Pods." },
                "mode": { "type": "string", "enum": ["A", "B"] },
            } },
            "status": { "properties": { "conditions": { "type": "array" }, "phase": { "type": "string" } } },
        } });
        assert_eq!(
            describe_fields(&schema, "spec", &Value::Null, &[]),
            [
                json!({ "path": "mode", "displayName": "Mode", "x-descriptors": [format!("{UI}:select:A"), format!("{UI}:select:B")] }),
                json!({ "path": "replicas", "displayName": "Replicas", "description": "Pods.", "x-descriptors": [format!("{UI}:podCount")] }),
            ]
        );
        assert_eq!(
            describe_fields(&schema, "status", &Value::Null, &[]),
            [
                json!({ "path": "conditions", "displayName": "Conditions", "x-descriptors": ["urn:alm:descriptor:io.kubernetes.conditions"] }),
                json!({ "path": "phase", "displayName": "Phase" }),
            ]
        );
    }
}
