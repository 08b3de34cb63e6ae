//! Uniqueness of items in lists of type `set` and `map`.

use std::collections::HashMap;

use rbuilder_schema::{ListType, Schema};
use serde_json::{Map, Value};

use crate::error::FieldError;
use crate::go;
use crate::path::Path;

/// Like [`find_duplicates`], but skips some fields of the value itself.
pub(crate) fn find_duplicates_except(skipped: &[&str], value: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        let inner = schema.properties.get(name.as_str());
        if let Some(inner) = inner.filter(|_| !skipped.contains(&name.as_str())) {
            visit(value, inner, &Path::root().child(name), &mut errors);
        }
    }
    errors
}

/// Returns an error for each duplicate in a list of type `set` or `map`.
pub(crate) fn find_duplicates(value: &Value, schema: &Schema, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    visit(value, schema, path, &mut errors);
    errors
}

fn visit(value: &Value, schema: &Schema, path: &Path, errors: &mut Vec<FieldError>) {
    match value {
        Value::Array(items) => {
            match schema.list_type {
                Some(ListType::Set) => check_set(items, path, errors),
                Some(ListType::Map) => check_map(items, schema, path, errors),
                Some(ListType::Atomic) | None => {}
            }
            if let Some(inner) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    visit(item, inner, &path.index(index), errors);
                }
            }
        }
        Value::Object(fields) => {
            if let Some(inner) = &schema.additional_properties {
                for (key, value) in fields {
                    visit(value, inner, &path.key(key), errors);
                }
            }
            for (name, value) in fields {
                if let Some(inner) = schema.properties.get(name.as_str()) {
                    visit(value, inner, &path.child(name), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_set(items: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    for index in find_repeated(items) {
        errors.push(FieldError::duplicate(&path.index(index), Some(&items[index])));
    }
}

fn check_map(items: &[Value], schema: &Schema, path: &Path, errors: &mut Vec<FieldError>) {
    let other = items.iter().position(|item| !item.is_null() && !item.is_object());
    if let Some(index) = other {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(&path.index(index), &items[index], detail));
        return;
    }
    let keys: Vec<Value> = items
        .iter()
        .map(|item| keys_of(item, &schema.list_map_keys))
        .collect();
    for index in find_repeated(&keys) {
        errors.push(FieldError::duplicate(&path.index(index), Some(&keys[index])));
    }
}

/// The keys of an item, omitting absent ones.
fn keys_of(item: &Value, keys: &[String]) -> Value {
    let entries = keys
        .iter()
        .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    Value::Object(entries.collect::<Map<_, _>>())
}

/// Indices of second occurrences, so that each duplicate is reported once.
fn find_repeated(values: &[Value]) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut repeated = Vec::new();
    for (index, value) in values.iter().enumerate() {
        // `1` and `1.0` are distinct in Go, so include the type.
        let times = seen
            .entry(format!("{} {}", go::type_name(value), go::json(value)))
            .or_default();
        *times += 1;
        if *times == 2 {
            repeated.push(index);
        }
    }
    repeated
}
