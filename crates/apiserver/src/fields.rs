//! Field sets in the `managedFields` format, and diffs of two objects as such sets.
//!
//! A set is a tree whose steps are fields (`f:`), items of a keyed list (`k:`) or items of a set
//! (`v:`). The schema determines the kind of step, and which values are atomic:
//!
//! ```text
//! object                                   set of its applied fields
//! spec:                                    f:spec:
//!   args: [a, b]          atomic list        f:args: {}
//!   finalizers: [x]       list type set      f:finalizers: {v:"x": {}}
//!   ports:                list type map      f:ports:
//!   - port: 80            keys: port,          k:{"port":80,"protocol":"TCP"}:
//!                         protocol               .: {}
//!                                                f:port: {}
//! ```
//!
//! `.` means that the node itself is in the set, in addition to the nodes below it. E.g. a list
//! item is owned both as a whole and by field. The key includes `protocol` even though the object
//! omits it, because keys include defaults. Otherwise, the same port with and without `protocol`
//! would be two items.

use std::collections::BTreeMap;

use rbuilder_schema::{ListType, MapType, Schema};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fields {
    owned: bool,
    below: BTreeMap<String, Fields>,
}

/// How server-side apply merges a value and tracks its managers.
pub(super) enum Form<'s> {
    /// Atomic: replaced and owned as a whole.
    Whole,
    /// An object, merged by field.
    Map,
    /// A list of type `set`, merged by value.
    Set,
    /// A list of type `map`, merged by these keys.
    Keyed(&'s [String]),
}

/// Determines how to merge a value. Without a schema, values are treated as in a CRD without list
/// types: objects are merged by field, lists are atomic.
pub(super) fn form_of<'s>(value: &Value, schema: Option<&'s Schema>) -> Form<'s> {
    match (value, schema) {
        (Value::Object(_), Some(schema)) if schema.map_type == Some(MapType::Atomic) => Form::Whole,
        (Value::Object(_), _) => Form::Map,
        (Value::Array(_), Some(schema)) => match schema.list_type {
            Some(ListType::Set) => Form::Set,
            Some(ListType::Map) => Form::Keyed(&schema.list_map_keys),
            _ => Form::Whole,
        },
        _ => Form::Whole,
    }
}

pub(super) fn field_schema<'s>(schema: Option<&'s Schema>, name: &str) -> (Option<&'s Schema>, bool) {
    match schema.and_then(|schema| schema.properties.get(name)) {
        Some(declared) => (Some(declared), true),
        None => (
            schema.and_then(|schema| schema.additional_properties.as_deref()),
            false,
        ),
    }
}

pub(super) fn item_schema(schema: Option<&Schema>) -> Option<&Schema> {
    schema.and_then(|schema| schema.items.as_deref())
}

/// The step to an item, e.g. `k:{"name":"a"}` in a keyed list or `v:"x"` in a set (if `keys` is
/// `None`).
pub(super) fn item_step(item: &Value, keys: Option<&[String]>, schema: Option<&Schema>) -> String {
    let Some(keys) = keys else {
        return format!("v:{item}");
    };
    let value = |key: &String| {
        let given = item.get(key).filter(|value| !value.is_null());
        // An omitted key has its default, which is part of the item's identity.
        given.or_else(|| field_schema(schema, key).0?.default.as_ref())
    };
    let keys: BTreeMap<&String, &Value> = keys.iter().filter_map(|key| Some((key, value(key)?))).collect();
    format!("k:{}", serde_json::to_string(&keys).unwrap_or_default())
}

fn parts<'v, 's>(
    value: &'v Value,
    schema: Option<&'s Schema>,
) -> Vec<(String, &'v Value, Option<&'s Schema>, bool)> {
    let of_item = |keys: Option<&[String]>| {
        let inner = item_schema(schema);
        let list = value.as_array().into_iter().flatten();
        list.map(|item| (item_step(item, keys, inner), item, inner, false))
            .collect()
    };
    match form_of(value, schema) {
        Form::Whole => Vec::new(),
        Form::Set => of_item(None),
        Form::Keyed(keys) => of_item(Some(keys)),
        Form::Map => {
            let fields = value.as_object().into_iter().flatten();
            fields
                .map(|(name, value)| {
                    let (schema, declared) = field_schema(schema, name);
                    (format!("f:{name}"), value, schema, declared)
                })
                .collect()
        }
    }
}

impl Fields {
    fn root() -> Self {
        Self {
            owned: true,
            below: BTreeMap::new(),
        }
    }

    pub(super) fn applied(value: &Value, schema: Option<&Schema>) -> Self {
        if matches!(form_of(value, schema), Form::Whole) {
            return Self::root();
        }
        let mut found = Self::default();
        for (step, part, inner, declared) in parts(value, schema) {
            let mut below = Self::applied(part, inner);
            // Map entries, list items and empty objects are members of the set themselves, in
            // addition to the fields below them.
            below.owned |= !declared || part.as_object().is_some_and(Map::is_empty);
            if !below.is_empty() {
                found.below.insert(step, below);
            }
        }
        found
    }

    fn all(value: &Value, schema: Option<&Schema>) -> Self {
        let parts = parts(value, schema).into_iter();
        Self {
            owned: true,
            below: parts
                .map(|(step, part, inner, _)| (step, Self::all(part, inner)))
                .collect(),
        }
    }

    pub(super) fn read(value: &Value) -> Self {
        let Some(steps) = value.as_object() else {
            return Self::default();
        };
        let below = steps.iter().filter(|(step, _)| *step != ".");
        Self {
            owned: steps.is_empty() || steps.contains_key("."),
            below: below
                .map(|(step, inner)| (step.clone(), Self::read(inner)))
                .collect(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut steps = Map::new();
        if self.owned && !self.below.is_empty() {
            steps.insert(".".to_owned(), Value::Object(Map::new()));
        }
        steps.extend(
            self.below
                .iter()
                .map(|(step, inner)| (step.clone(), inner.to_json())),
        );
        Value::Object(steps)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.owned && self.below.is_empty()
    }

    pub(super) fn below(&self) -> impl Iterator<Item = (&str, &Fields)> {
        self.below.iter().map(|(step, inner)| (step.as_str(), inner))
    }

    pub(super) fn get(&self, step: &str) -> Option<&Fields> {
        self.below.get(step)
    }

    /// Adds a node for the field without adding the field itself, so that `remove` descends into
    /// it.
    pub(super) fn reserve(&mut self, step: &str) {
        self.below.entry(step.to_owned()).or_default();
    }

    pub(super) fn add(&mut self, other: &Fields) {
        self.owned |= other.owned;
        for (step, inner) in &other.below {
            self.below.entry(step.clone()).or_default().add(inner);
        }
    }

    pub(super) fn minus(&self, other: &Fields) -> Self {
        let rest = |(step, inner): (&String, &Fields)| {
            let rest = match other.below.get(step) {
                Some(other) => inner.minus(other),
                None => inner.clone(),
            };
            (!rest.is_empty()).then(|| (step.clone(), rest))
        };
        Self {
            owned: self.owned && !other.owned,
            below: self.below.iter().filter_map(rest).collect(),
        }
    }

    pub(super) fn common(&self, other: &Fields) -> Self {
        let both = |(step, inner): (&String, &Fields)| {
            let both = inner.common(other.below.get(step)?);
            (!both.is_empty()).then(|| (step.clone(), both))
        };
        Self {
            owned: self.owned && other.owned,
            below: self.below.iter().filter_map(both).collect(),
        }
    }

    /// The paths as they appear in messages, e.g. `.spec.containers[name="a"].image`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.collect_paths("", &mut found);
        found
    }

    fn collect_paths(&self, path: &str, found: &mut Vec<String>) {
        if self.owned {
            found.push(path.to_owned());
        }
        for (step, inner) in &self.below {
            inner.collect_paths(&format!("{path}{}", step_path(step)), found);
        }
    }
}

/// Formats a step for messages: `.name`, `[name="a"]` or `[="x"]`.
pub(super) fn step_path(step: &str) -> String {
    match step.split_at(2) {
        ("k:", keys) => {
            let keys: BTreeMap<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", keys.join(","))
        }
        ("v:", value) => format!("[={value}]"),
        (_, name) => format!(".{name}"),
    }
}

#[derive(Debug, Default)]
pub(super) struct Difference {
    pub(super) changed: Fields,
    pub(super) removed: Fields,
}

impl Difference {
    pub(super) fn between(before: &Value, after: &Value, schema: Option<&Schema>) -> Self {
        if before == after {
            return Self::default();
        }
        // If either side is atomic, the value can only be replaced as a whole.
        if matches!(form_of(before, schema), Form::Whole) || matches!(form_of(after, schema), Form::Whole) {
            return Self {
                changed: Fields::root(),
                removed: Fields::default(),
            };
        }
        let mut found = Self::default();
        let mut old: BTreeMap<String, _> = parts(before, schema)
            .into_iter()
            .map(|(step, part, inner, _)| (step, (part, inner)))
            .collect();
        for (step, part, inner, _) in parts(after, schema) {
            match old.remove(&step) {
                None => {
                    found.changed.below.insert(step, Fields::all(part, inner));
                }
                Some((before, inner)) => {
                    let below = Self::between(before, part, inner);
                    found.insert(step, below);
                }
            }
        }
        for (step, (part, inner)) in old {
            found.removed.below.insert(step, Fields::all(part, inner));
        }
        found
    }

    fn insert(&mut self, step: String, below: Difference) {
        if !below.changed.is_empty() {
            self.changed.below.insert(step.clone(), below.changed);
        }
        if !below.removed.is_empty() {
            self.removed.below.insert(step, below.removed);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        serde_json::from_value(json!({ "type": "object", "properties": {
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
            "spec": { "type": "object", "properties": {
                "names": { "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set" },
                "args": { "type": "array", "items": { "type": "string" } },
                "ports": { "type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": { "type": "object", "properties": {
                        "port": { "type": "integer" }, "name": { "type": "string" },
                        "protocol": { "type": "string", "default": "TCP" } } } },
            } },
        } }))
        .unwrap()
    }

    #[test]
    fn applied_fields_have_format_of_kubernetes() {
        let value = json!({ "labels": { "a": "b" }, "spec": {
            "names": ["x"], "args": ["y", "z"], "ports": [{ "port": 80, "name": "http" }], "any": { "q": { "w": 1 } },
        } });
        let fields = Fields::applied(&value, Some(&schema()));
        let expected = json!({
            "f:labels": { "f:a": {} },
            "f:spec": {
                "f:names": { "v:\"x\"": {} }, "f:args": {}, "f:any": { ".": {}, "f:q": { ".": {}, "f:w": {} } },
                "f:ports": { "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:port": {}, "f:name": {} } },
            },
        });
        assert_eq!(fields.to_json(), expected);
        assert_eq!(Fields::read(&expected), fields);
        let paths = fields.paths();
        assert!(
            paths.contains(&".spec.ports[port=80,protocol=\"TCP\"].name".to_owned()),
            "{paths:?}"
        );
        assert!(paths.contains(&".spec.names[=\"x\"]".to_owned()), "{paths:?}");
    }

    #[test]
    fn atomic_values_differ_as_a_whole() {
        let before = json!({ "labels": { "a": "b" }, "spec": { "names": ["x", "y"], "args": ["1", "2"] } });
        let after =
            json!({ "labels": { "a": "c", "n": "" }, "spec": { "names": ["y", "z"], "args": ["2", "1"] } });
        let found = Difference::between(&before, &after, Some(&schema()));
        assert_eq!(
            found.changed.paths(),
            [".labels.a", ".labels.n", ".spec.args", ".spec.names[=\"z\"]"]
        );
        assert_eq!(found.removed.paths(), [".spec.names[=\"x\"]"]);
        let none = Difference::between(&after, &after, Some(&schema()));
        assert!(none.changed.is_empty() && none.removed.is_empty());
    }

    #[test]
    fn sets_support_union_intersection_and_difference() {
        let read = |value: Value| Fields::read(&value);
        let mut ours = read(json!({ "f:a": { ".": {}, "f:b": {} }, "f:c": {} }));
        let theirs = read(json!({ "f:a": { "f:b": {} }, "f:d": {} }));
        assert_eq!(ours.common(&theirs).paths(), [".a.b"]);
        assert_eq!(ours.minus(&theirs).paths(), [".a", ".c"]);
        ours.add(&theirs);
        assert_eq!(ours.paths(), [".a", ".a.b", ".c", ".d"]);
    }
}
