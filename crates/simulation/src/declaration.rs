//! Objects that the user of the operator declares, and variants of them.

use std::collections::BTreeMap;

use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::world::ObjectName;

/// An object to declare.
#[derive(Clone, Debug)]
pub(crate) struct Declaration {
    pub(crate) object: Value,
    pub(crate) name: ObjectName,
    /// Other forms of the object, as changes of it.
    pub(crate) alternatives: Vec<BTreeMap<String, Value>>,
}

impl Declaration {
    /// Returns the object with other values at JSON pointers. `null` removes a field.
    pub(crate) fn with(&self, changes: &BTreeMap<String, Value>) -> Value {
        let mut object = self.object.clone();
        for (pointer, value) in changes {
            set(&mut object, pointer, value);
        }
        object
    }

    /// Returns the request that applies an object with this name. `parameters` are added to the query.
    pub(crate) fn apply(&self, object: &Value, parameters: &str) -> http::Request<String> {
        let path = self.name.path();
        let request = http::Request::patch(format!("{path}?fieldManager=user&force=true{parameters}"));
        let request = request.header(CONTENT_TYPE, "application/apply-patch+yaml");
        request
            .body(object.to_string())
            .expect("a path of names is a URI")
    }

    /// Returns the other forms of the object, and then one change for each field of the spec: another
    /// value, or none.
    pub(crate) fn variants(&self) -> Vec<BTreeMap<String, Value>> {
        let mut changes = Vec::new();
        if let Some(spec) = self.object.get("spec") {
            vary(spec, "/spec", &mut changes);
        }
        let single = changes.into_iter().map(|change| BTreeMap::from([change]));
        self.alternatives.iter().cloned().chain(single).collect()
    }
}

/// Returns the changes that turn an object into another one.
pub(crate) fn changes_between(object: &Value, other: &Value) -> BTreeMap<String, Value> {
    let mut changes = BTreeMap::new();
    compare("", object, other, &mut changes);
    changes
}

fn compare(pointer: &str, value: &Value, other: &Value, changes: &mut BTreeMap<String, Value>) {
    let (Some(fields), Some(others)) = (value.as_object(), other.as_object()) else {
        if value != other {
            changes.insert(pointer.to_owned(), other.clone());
        }
        return;
    };
    for name in fields.keys().chain(others.keys()) {
        let inner = format!("{pointer}/{}", escape(name));
        let get = |fields: &serde_json::Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
        compare(&inner, &get(fields), &get(others), changes);
    }
}

/// Returns a name as a part of a JSON pointer.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Sets the value at a JSON pointer below existing objects. `null` removes a field.
fn set(object: &mut Value, pointer: &str, value: &Value) {
    let Some((parent, field)) = pointer.rsplit_once('/') else {
        return;
    };
    let field = field.replace("~1", "/").replace("~0", "~");
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) if value.is_null() => {
            fields.remove(&field);
        }
        Some(Value::Object(fields)) => {
            fields.insert(field, value.clone());
        }
        Some(Value::Array(items)) => {
            if let Some(item) = field.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                *item = value.clone();
            }
        }
        _ => {}
    }
}

fn vary(value: &Value, pointer: &str, changes: &mut Vec<(String, Value)>) {
    let mut push = |value: Value| changes.push((pointer.to_owned(), value));
    match value {
        Value::Bool(value) => push((!value).into()),
        Value::Number(number) => {
            if let Some(number) = number.as_i64() {
                push(json!(number + 1));
                if number > 0 {
                    push(json!(number - 1));
                }
            }
        }
        Value::String(text) => push(json!(change_text(text))),
        Value::Array(items) => {
            if !items.is_empty() {
                push(json!([]));
                push(json!(items[..items.len() - 1]));
            }
            for (index, item) in items.iter().enumerate().take(2) {
                vary(item, &format!("{pointer}/{index}"), changes);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let pointer = format!("{pointer}/{}", escape(name));
                changes.push((pointer.clone(), Value::Null));
                vary(value, &pointer, changes);
            }
        }
        Value::Null => {}
    }
}

/// Changes a text so that it mostly keeps its form: the last number is one larger, or a letter is
/// added.
fn change_text(text: &str) -> String {
    let end = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let start = end.trim_end_matches(|letter: char| letter.is_ascii_digit());
    match end[start.len()..].parse::<u32>() {
        Ok(number) => format!("{start}{}{}", u64::from(number) + 1, &text[end.len()..]),
        Err(_) => format!("{text}x"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_lead_to_the_other_object() {
        let object =
            json!({ "metadata": { "name": "a" }, "spec": { "size": 1, "names": ["a"], "on": true } });
        let other = json!({
            "metadata": { "name": "a", "annotations": { "example.com/layout": "v1" } },
            "spec": { "size": 1, "names": [] },
        });
        let declaration = Declaration {
            object,
            name: ObjectName::default(),
            alternatives: Vec::new(),
        };
        let changes = changes_between(&declaration.object, &other);
        assert_eq!(declaration.with(&changes), other);
        let pointers: Vec<&str> = changes.keys().map(String::as_str).collect();
        assert_eq!(pointers, ["/metadata/annotations", "/spec/names", "/spec/on"]);
    }

    #[test]
    fn each_field_is_changed_and_removed() {
        let object = json!({ "spec": { "size": 1, "image": "a:1.2", "on": true, "names": ["a", "b"] } });
        let name = ObjectName::default();
        let declaration = Declaration {
            object,
            name,
            alternatives: Vec::new(),
        };
        let variants = declaration.variants();
        let specs: Vec<Value> = variants
            .iter()
            .map(|changes| declaration.with(changes)["spec"].clone())
            .collect();
        let with = |field: &str, value: Value| {
            let mut spec = declaration.object["spec"].clone();
            spec[field] = value;
            spec
        };
        for expected in [
            with("size", json!(2)),
            with("size", json!(0)),
            with("image", json!("a:1.3")),
            with("on", json!(false)),
            with("names", json!([])),
            with("names", json!(["a"])),
            json!({ "image": "a:1.2", "on": true, "names": ["a", "b"] }),
        ] {
            assert!(specs.contains(&expected), "{expected} in {specs:?}");
        }
    }
}
