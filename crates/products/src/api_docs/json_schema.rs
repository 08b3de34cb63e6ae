//! The kinds as a JSON Schema (draft 7, which editors support), for manifests with any of them.
//!
//! CEL rules have no counterpart, and neither do sets: the API server checks more than an editor.
//! Fields that the server would drop are errors, as they are for `kubectl apply`.

use rbuilder_schema::{Schema, SchemaType};
use serde_json::{Map, Value, json};

use super::MARK;
use super::model::{Kind, Reference, Version};

/// Renders the schema. Versions that aren't served are omitted.
pub fn render_json_schema(reference: &Reference) -> String {
    let served = reference.kinds.iter().flat_map(|kind| {
        let versions = kind.versions.iter().filter(|version| version.served);
        versions.map(move |version| (kind, version))
    });
    let mut definitions = Map::new();
    let (mut cases, mut kinds, mut api_versions) = (Vec::new(), Vec::new(), Vec::new());
    for (kind, version) in served {
        let name = format!("{}.{}.{}", kind.group, version.name, kind.name);
        let api_version = format!("{}/{}", kind.group, version.name);
        cases.push(json!({
            "if": { "properties": { "apiVersion": { "const": api_version }, "kind": { "const": kind.name } } },
            "then": { "$ref": format!("#/definitions/{name}") },
        }));
        definitions.insert(name, object(kind, version));
        kinds.push(Value::from(kind.name.clone()));
        api_versions.push(Value::from(api_version));
    }
    kinds.dedup();
    api_versions.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
    api_versions.dedup();
    // A file may also contain objects of other kinds. The values are for completion.
    let any_of = |values: Vec<Value>| json!({ "anyOf": [{ "enum": values }, { "type": "string" }] });
    let schema = json!({
        "$comment": MARK,
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": reference.title,
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": { "apiVersion": any_of(api_versions), "kind": any_of(kinds) },
        "allOf": cases,
        "definitions": definitions,
    });
    format!("{schema:#}\n")
}

/// An entire object. The schema of a CRD doesn't describe its `metadata`.
fn object(kind: &Kind, version: &Version) -> Value {
    let mut schema = node(version.schema());
    let text = json!({ "type": "string" });
    schema["properties"]["apiVersion"] = text.clone();
    schema["properties"]["kind"] = text.clone();
    let metadata = &mut schema["properties"]["metadata"];
    let bounds = metadata["properties"]["name"].take();
    let name = if bounds.is_null() { text.clone() } else { bounds };
    let texts = json!({ "type": "object", "additionalProperties": text });
    *metadata = json!({
        "type": "object",
        "properties": { "name": name, "namespace": text, "labels": texts, "annotations": texts },
    });
    if !kind.is_namespaced {
        metadata["properties"]["namespace"] = false.into();
    }
    if version.deprecated {
        schema["deprecated"] = true.into();
    }
    schema
}

fn node(schema: &Schema) -> Value {
    let mut fields = Map::new();
    let mut add = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value);
        }
    };
    let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(Value::from);
    add("title", text(&schema.title));
    add("description", text(&schema.description));
    add("type", types(schema));
    add("format", text(&schema.format));
    add(
        "pattern",
        schema
            .pattern
            .as_deref()
            .filter(|pattern| is_portable(pattern))
            .map(Value::from),
    );
    add("default", schema.default.clone());
    add(
        "enum",
        (!schema.enumeration.is_empty()).then(|| schema.enumeration.clone().into()),
    );
    // In OpenAPI, whether a bound is exclusive is a flag; in JSON Schema, it's a bound of its own.
    let bounds = [
        (
            "minimum",
            "exclusiveMinimum",
            &schema.minimum,
            schema.exclusive_minimum,
        ),
        (
            "maximum",
            "exclusiveMaximum",
            &schema.maximum,
            schema.exclusive_maximum,
        ),
    ];
    for (key, exclusive_key, bound, is_exclusive) in bounds {
        let key = if is_exclusive { exclusive_key } else { key };
        add(key, bound.clone().map(Value::Number));
    }
    add("multipleOf", schema.multiple_of.clone().map(Value::Number));
    let counts = [
        ("minLength", schema.min_length),
        ("maxLength", schema.max_length),
        ("minItems", schema.min_items),
        ("maxItems", schema.max_items),
        ("minProperties", schema.min_properties),
        ("maxProperties", schema.max_properties),
    ];
    for (key, count) in counts {
        add(key, count.map(Value::from));
    }
    let list = |schemas: &[Schema]| (!schemas.is_empty()).then(|| schemas.iter().map(node).collect());
    add("allOf", list(&schema.all_of));
    // The alternatives that an int-or-string has are those of its types.
    add("anyOf", list(&schema.any_of).filter(|_| !schema.int_or_string));
    add("oneOf", list(&schema.one_of));
    add("not", schema.not.as_deref().map(node));
    add("items", schema.items.as_deref().map(node));
    let properties = schema.properties.iter();
    let property = |name: &str, field: &Schema| match schema.embedded_resource && name == "metadata" {
        // The server knows the fields of every object's metadata.
        true if field.properties.is_empty() => json!({ "type": "object" }),
        _ => node(field),
    };
    let properties: Map<String, Value> = properties
        .map(|(name, field)| (name.to_string(), property(name, field)))
        .collect();
    add("properties", (!properties.is_empty()).then(|| properties.into()));
    let required: Value = schema.required.iter().map(|name| Value::from(&**name)).collect();
    add("required", (!schema.required.is_empty()).then_some(required));
    add("additionalProperties", others(schema));
    fields.into()
}

fn types(schema: &Schema) -> Option<Value> {
    let mut types = match schema.schema_type {
        _ if schema.int_or_string => vec!["integer", "string"],
        Some(one) => vec![one.as_str()],
        None => return None,
    };
    if schema.nullable {
        types.push("null");
    }
    Some(match types[..] {
        [one] => one.into(),
        _ => types.into(),
    })
}

/// What is allowed of fields that the schema doesn't name.
fn others(schema: &Schema) -> Option<Value> {
    let is_object = schema.schema_type == Some(SchemaType::Object);
    let is_open = schema.preserve_unknown_fields || schema.embedded_resource;
    match &schema.additional_properties {
        Some(values) => Some(node(values)),
        None if is_object && !is_open => Some(false.into()),
        None => None,
    }
}

/// Whether a pattern of RE2 means the same in the dialect of JSON Schema (ECMA 262).
fn is_portable(pattern: &str) -> bool {
    let flags = pattern
        .match_indices("(?")
        .any(|(at, _)| !pattern[at..].starts_with("(?:"));
    let is_own = ["\\A", "\\z", "\\Q", "\\C", "\\p", "\\P", "\\a", "\\x{", "[[:"];
    !flags && !is_own.iter().any(|part| pattern.contains(part))
}
