//! Validates embedded objects (`x-kubernetes-embedded-resource`).

use rbuilder_kubernetes::names;
use rbuilder_schema::Schema;
use serde_json::{Map, Value};

use crate::error::FieldError;
use crate::metadata::{self, Metadata, NameRule};
use crate::object_meta;
use crate::path::Path;

pub(crate) fn check_embedded(value: &Value, schema: &Schema, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    visit(value, schema, path, &mut errors);
    errors
}

fn visit(value: &Value, schema: &Schema, path: &Path, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource {
                check_stanza(value, fields, path, errors);
            }
            for (name, value) in fields {
                if let Some(inner) = schema.properties.get(name.as_str()) {
                    visit(value, inner, &path.child(name), errors);
                } else if let Some(inner) = &schema.additional_properties {
                    visit(value, inner, &path.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    visit(item, inner, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_stanza(object: &Value, fields: &Map<String, Value>, path: &Path, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        if !fields.contains_key(name) {
            errors.push(FieldError::required(&path.child(name), ""));
        }
    }
    for (name, value) in fields {
        let field = path.child(name);
        match name.as_str() {
            "apiVersion" => errors.extend(check_text(value, &field, |version| {
                metadata::parse_group_version(version).err()
            })),
            "kind" => errors.extend(check_text(value, &field, |kind| {
                let reasons = names::check_dns_1035_label(&kind.to_lowercase());
                let why = "may have mixed case, but should otherwise match: ";
                (!reasons.is_empty()).then(|| format!("{why}{}", reasons.join(",")))
            })),
            "metadata" => check_metadata(object, value, &field, errors),
            _ => {}
        }
    }
}

fn check_text(value: &Value, field: &Path, rule: impl Fn(&str) -> Option<String>) -> Option<FieldError> {
    let Value::String(text) = value else {
        return Some(FieldError::invalid(field, value, "must be a string"));
    };
    if text.is_empty() {
        return Some(FieldError::invalid(field, value, "must not be empty"));
    }
    rule(text).map(|reason| FieldError::invalid(field, value, &reason))
}

fn check_metadata(object: &Value, value: &Value, field: &Path, errors: &mut Vec<FieldError>) {
    if let Err(reason) = object_meta::decode(value) {
        errors.push(FieldError::invalid(field, value, &reason));
        return;
    }
    // `check_new` requires a name, but embedded objects don't need one.
    let mut named = object.clone();
    if Metadata::of(object).text("name").is_empty()
        && let Some(metadata) = named.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert("name".to_owned(), "fakename".into());
    }
    let metadata = Metadata::of(&named);
    let is_namespaced = !metadata.text("namespace").is_empty();
    errors.extend(metadata::check_new(
        metadata,
        is_namespaced,
        NameRule::PathSegment,
        field,
    ));
}
