//! The objects that the operator's user declares, and how to vary them.

use std::collections::BTreeMap;

use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::history::ELSEWHERE;
use crate::world::ObjectName;

/// Base64 of `other`.
const OTHER_DATA: &str = "b3RoZXI=";

/// Label and annotation of a variant.
const VARIED: &str = "simulation.rbuilder/varied";

/// Field manager of the user.
pub(crate) const USER: &str = "user";

/// Cap on the changes per object, as large specs have hundreds of fields.
const MOST_CHANGES: usize = 24;

#[derive(Clone, Debug)]
pub(crate) struct Declaration {
    pub(crate) object: Value,
    pub(crate) name: ObjectName,
    /// Alternative forms, each as a diff against `object`.
    pub(crate) alternatives: Vec<BTreeMap<String, Value>>,
    pub(crate) random: Vec<BTreeMap<String, Value>>,
    /// `null` for built-in kinds.
    pub(crate) schema: Value,
}

impl Declaration {
    /// Returns a copy of the object with some values replaced. Keys are JSON pointers; `null`
    /// removes the field.
    pub(crate) fn with(&self, changes: &BTreeMap<String, Value>) -> Value {
        let mut object = self.object.clone();
        for (pointer, value) in changes {
            set(&mut object, pointer, value);
        }
        object
    }

    /// Builds a server-side apply request. `parameters` is appended to the query string, e.g.
    /// `&dryRun=All`.
    pub(crate) fn apply(&self, object: &Value, parameters: &str) -> http::Request<String> {
        let path = self.name.path();
        let request = http::Request::patch(format!("{path}?fieldManager={USER}&force=true{parameters}"));
        let request = request.header(CONTENT_TYPE, "application/apply-patch+yaml");
        request
            .body(object.to_string())
            .expect("a path of names is a URI")
    }

    /// Builds a merge patch that turns one form of the object into another.
    pub(crate) fn patch(&self, former: &Value, object: &Value) -> http::Request<String> {
        let request = http::Request::patch(format!("{}?fieldManager={USER}", self.name.path()));
        let request = request.header(CONTENT_TYPE, "application/merge-patch+json");
        let patch = merge_patch(former, object);
        request.body(patch.to_string()).expect("a path of names is a URI")
    }

    /// Returns a copy of this declaration in the namespace [`ELSEWHERE`].
    pub(crate) fn elsewhere(&self) -> Self {
        let mut copy = self.clone();
        copy.object["metadata"]["namespace"] = ELSEWHERE.into();
        copy.name.namespace = ELSEWHERE.to_owned();
        copy
    }

    pub(crate) fn add_random(&mut self, object: &Value) {
        let mut other = self.object.clone();
        let is_value = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata" | "status");
        if let (Some(fields), Some(values)) = (other.as_object_mut(), object.as_object()) {
            fields.retain(|name, _| !is_value(name));
            let values = values.iter().filter(|(name, _)| is_value(name));
            fields.extend(values.map(|(name, value)| (name.clone(), value.clone())));
        }
        let changes = changes_between(&self.object, &other);
        if !changes.is_empty() {
            self.random.push(changes);
        }
    }

    /// Values of ConfigMaps and Secrets.
    fn vary_data(&self, field: &str, changes: &mut Vec<(String, Value)>) {
        let is_encoded = self.object["kind"] == "Secret" && field == "data";
        for (key, value) in self.object[field].as_object().into_iter().flatten() {
            let Some(text) = value.as_str() else { continue };
            let other = match is_encoded {
                true if text == OTHER_DATA => "b3RoZXIy",
                true => OTHER_DATA,
                false => &change_text(text),
            };
            changes.push((format!("/{field}/{}", escape(key)), other.into()));
        }
    }

    /// A label and an annotation that no operator knows.
    fn other_metadata(&self) -> BTreeMap<String, Value> {
        let fields = ["labels", "annotations"].map(|field| {
            let mut values = self.object["metadata"][field].clone();
            if !values.is_object() {
                values = json!({});
            }
            values[VARIED] = "varied".into();
            (format!("/metadata/{field}"), values)
        });
        fields.into()
    }

    /// All variants of this declaration to try, in order of priority.
    ///
    /// Explicit alternatives come first. Random variants and single-field changes then alternate,
    /// so that neither is starved if the budget runs out. A single-field change modifies the value,
    /// unsets the field, or picks a value that the schema mentions. Values of ConfigMaps and Secrets
    /// are modified, and the last variant has another label and another annotation.
    pub(crate) fn variants(&self) -> Vec<BTreeMap<String, Value>> {
        let mut changes = Vec::new();
        for data in ["data", "stringData"] {
            self.vary_data(data, &mut changes);
        }
        if let Some(spec) = self.object.get("spec") {
            vary(spec, "/spec", &mut changes);
            let named = named_values(spec, &self.schema["properties"]["spec"], "/spec");
            for change in named {
                if !changes.contains(&change) {
                    changes.push(change);
                }
            }
        }
        let single = changes.into_iter().take(MOST_CHANGES);
        let single = single.map(|change| BTreeMap::from([change]));
        let single = single.chain([self.other_metadata()]);
        let varied = alternate(single, self.random.iter().cloned());
        self.alternatives.iter().cloned().chain(varied).collect()
    }
}

fn alternate<T>(first: impl Iterator<Item = T>, second: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let (mut first, mut second) = (first.fuse(), second.fuse());
    // Start with `second`, so that the first flip leads to `first`.
    let mut is_second = true;
    std::iter::from_fn(move || {
        is_second = !is_second;
        match is_second {
            true => second.next().or_else(|| first.next()),
            false => first.next().or_else(|| second.next()),
        }
    })
}

/// Computes the changes that turn `object` into `other`, keyed by JSON pointer.
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

/// Computes the merge patch (RFC 7396) that turns `value` into `other`.
fn merge_patch(value: &Value, other: &Value) -> Value {
    let (Some(fields), Some(others)) = (value.as_object(), other.as_object()) else {
        return other.clone();
    };
    let removed = fields.keys().filter(|name| !others.contains_key(*name));
    let removed = removed.map(|name| (name.clone(), Value::Null));
    let set = others.iter().filter_map(|(name, other)| match fields.get(name) {
        Some(value) if value == other => None,
        Some(value) => Some((name.clone(), merge_patch(value, other))),
        None => Some((name.clone(), other.clone())),
    });
    Value::Object(removed.chain(set).collect())
}

/// Escapes a field name for a JSON pointer (RFC 6901).
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Sets a field, or removes it if `value` is `null`. Its parents must exist.
fn set(object: &mut Value, pointer: &str, value: &Value) {
    let Some((parent, field)) = pointer.rsplit_once('/') else {
        return;
    };
    // Unescape `~1` first; the other way around, `~01` would end up as `/`.
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
            // Two items are enough; the rest would mostly repeat them.
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

/// Collects values of interest from a schema: bounds, enum variants, and fields that are currently
/// unset.
fn named_values(value: &Value, schema: &Value, pointer: &str) -> Vec<(String, Value)> {
    let mut changes = Vec::new();
    for bound in ["maximum", "minimum"] {
        let bound = &schema[bound];
        if value.is_number() && bound.is_number() && bound.as_f64() != value.as_f64() {
            changes.push((pointer.to_owned(), bound.clone()));
        }
    }
    let items = schema["enum"].as_array().into_iter().flatten();
    changes.extend(
        items
            .filter(|item| *item != value)
            .map(|item| (pointer.to_owned(), item.clone())),
    );
    let Some(fields) = value.as_object() else {
        return changes;
    };
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let pointer = format!("{pointer}/{}", escape(name));
        match fields.get(name) {
            Some(value) => changes.extend(named_values(value, property, &pointer)),
            None => changes.extend(simple_value(property).map(|value| (pointer, value))),
        }
    }
    changes
}

/// Picks a value other than the default. Doesn't attempt complex schemas, e.g. ones with a
/// `pattern`.
fn simple_value(schema: &Value) -> Option<Value> {
    let items = schema["enum"].as_array();
    if let Some(items) = items {
        return items.iter().find(|item| **item != schema["default"]).cloned();
    }
    let value = match schema["type"].as_str()? {
        "boolean" => json!(schema["default"] != true),
        "integer" => ["maximum", "minimum"]
            .iter()
            .map(|bound| schema[bound].clone())
            .find(|bound| bound.is_number() && *bound != schema["default"])
            .unwrap_or(json!(1)),
        "string" if schema["pattern"].is_null() && schema["format"].is_null() => json!("x"),
        _ => return None,
    };
    Some(value)
}

/// Modifies a string while mostly preserving its format: increments the last number, or appends a
/// letter if there's none.
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
            random: Vec::new(),
            schema: Value::Null,
        };
        let changes = changes_between(&declaration.object, &other);
        assert_eq!(declaration.with(&changes), other);
        let pointers: Vec<&str> = changes.keys().map(String::as_str).collect();
        assert_eq!(pointers, ["/metadata/annotations", "/spec/names", "/spec/on"]);
    }

    #[test]
    fn random_values_alternate_with_single_changes() {
        let object = json!({ "metadata": { "name": "a" }, "spec": { "size": 1 } });
        let mut declaration = Declaration {
            object,
            name: ObjectName::default(),
            alternatives: Vec::new(),
            random: Vec::new(),
            schema: Value::Null,
        };
        for size in [1, 7, 8] {
            let metadata = json!({ "name": "sample" });
            declaration.add_random(&json!({ "metadata": metadata, "spec": { "size": size }, "status": {} }));
        }
        let variants = declaration.variants();
        let variants: Vec<Value> = variants.iter().map(|changes| declaration.with(changes)).collect();
        let with = |spec: Value| json!({ "metadata": { "name": "a" }, "spec": spec });
        let sizes = [2, 7, 0, 8].map(|size| with(json!({ "size": size })));
        assert_eq!(
            variants.iter().filter(|variant| sizes.contains(variant)).count(),
            4
        );
        assert_eq!(variants[1], with(json!({ "size": 7 })));
        assert_eq!(variants[3], with(json!({ "size": 8 })), "{variants:?}");
    }

    #[test]
    fn tries_values_mentioned_in_the_schema() {
        let schema = json!({ "properties": {
            "size": { "type": "integer", "minimum": 1, "maximum": 5 },
            "mode": { "type": "string", "enum": ["fast", "safe"] },
            "title": { "type": "string" },
            "paused": { "type": "boolean", "default": false },
            "address": { "type": "string", "pattern": "^[0-9.]+$" },
        } });
        let found = named_values(&json!({ "size": 1, "mode": "safe" }), &schema, "/spec");
        let expected = [
            ("/spec/mode", json!("fast")),
            ("/spec/paused", json!(true)),
            ("/spec/size", json!(5)),
            ("/spec/title", json!("x")),
        ];
        let mut found: Vec<(&str, Value)> = found
            .iter()
            .map(|(pointer, value)| (pointer.as_str(), value.clone()))
            .collect();
        found.sort_by_key(|(pointer, _)| *pointer);
        assert_eq!(found, expected);
    }

    #[test]
    fn data_and_metadata_are_varied() {
        let declaration = |object: Value| Declaration {
            object,
            name: ObjectName::default(),
            alternatives: Vec::new(),
            random: Vec::new(),
            schema: Value::Null,
        };
        let metadata = json!({ "name": "a", "labels": { "app": "a" } });
        let map = declaration(json!({ "kind": "ConfigMap", "metadata": metadata, "data": { "a": "x1" } }));
        let variants: Vec<Value> = map.variants().iter().map(|changes| map.with(changes)).collect();
        assert_eq!(variants[0]["data"], json!({ "a": "x2" }));
        let labels = json!({ "app": "a", "simulation.rbuilder/varied": "varied" });
        assert_eq!(variants[1]["metadata"]["labels"], labels);
        let secret = declaration(json!({ "kind": "Secret", "data": { "a": "eA==" } }));
        let changes = &secret.variants()[0];
        assert_eq!(secret.with(changes)["data"], json!({ "a": "b3RoZXI=" }));
    }

    #[test]
    fn each_field_is_changed_and_removed() {
        let object = json!({ "spec": { "size": 1, "image": "a:1.2", "on": true, "names": ["a", "b"] } });
        let name = ObjectName::default();
        let declaration = Declaration {
            object,
            name,
            alternatives: Vec::new(),
            random: Vec::new(),
            schema: Value::Null,
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
