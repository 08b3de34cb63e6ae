//! Compares the schemas of two CRDs by path: types, constraints, rules, defaults and fields.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rbuilder_schema::{KEYS, Key, SchemaType, Side};
use serde_json::Value;

use super::{Comparison, Direction, list};

impl Comparison {
    /// Compares the schemas of the value at a path. For an optional field, the API server drops
    /// `null`.
    pub(super) fn compare_schemas(&mut self, before: &Value, after: &Value, path: &str, is_optional: bool) {
        let at = if path.is_empty() { "." } else { path };
        if before["type"] != after["type"] {
            return self.compare_types(before, after, at);
        }
        let before = self.without_idle_keys(before, after, at);
        let before = before.as_ref();
        match (keeps_unknown_fields(before), keeps_unknown_fields(after)) {
            (true, false) if after["additionalProperties"].is_object() => {
                let values = &after["additionalProperties"]["type"];
                let name = values.as_str().unwrap_or("any type");
                self.add(Direction::Less, format!("`{at}.*`: only type {name} is accepted"));
            }
            (true, false) => self.add(
                Direction::Less,
                format!("`{at}`: unknown fields are dropped; they were kept"),
            ),
            (false, true) => self.add(Direction::More, format!("`{at}`: unknown fields are kept")),
            _ => {}
        }
        self.compare_flags(before, after, at, is_optional);
        self.compare_bounds(before, after, at);
        self.compare_enumerations(before, after, at);
        self.compare_rules(before, after, at);
        self.compare_alternatives(before, after, at);
        self.compare_defaults(before, after, at);
        self.compare_fields(before, after, path);
        for (inner, suffix) in [("items", "[*]"), ("additionalProperties", ".*")] {
            let (old, new) = (&before[inner], &after[inner]);
            if old.is_object() && new.is_object() {
                self.compare_schemas(old, new, &format!("{path}{suffix}"), false);
            } else if old.is_object() && !keeps_unknown_fields(after) {
                self.add(Direction::Less, format!("`{at}`: entries are dropped"));
            } else if new.is_object() && !keeps_unknown_fields(before) {
                self.add(Direction::More, format!("`{at}`: entries are kept"));
            }
        }
    }

    /// Drops keys of a committed schema that only apply to values of other types, unless the
    /// generated schema has them as well. The API server ignores such keys.
    fn without_idle_keys<'a>(&mut self, before: &'a Value, after: &Value, at: &str) -> Cow<'a, Value> {
        let Ok(found) = serde_json::from_value::<SchemaType>(before["type"].clone()) else {
            return Cow::Borrowed(before);
        };
        let this = found.as_str();
        let is_idle = |key: &&Key| !key.name.starts_with("x-") && !key.subject.includes(found);
        let mut schema = Cow::Borrowed(before);
        for key in KEYS.iter().filter(is_idle).map(|key| key.name) {
            if before[key].is_null() || !after[key].is_null() {
                continue;
            }
            if let Some(keys) = schema.to_mut().as_object_mut() {
                keys.remove(key);
            }
            let article = if this.starts_with(['a', 'i', 'o']) {
                "an"
            } else {
                "a"
            };
            self.idle.insert(format!(
                "`{at}`: `{key}` has no effect on {article} {this}, and is left out"
            ));
        }
        schema
    }

    fn compare_types(&mut self, before: &Value, after: &Value, at: &str) {
        let name = |schema: &Value| match schema["type"].as_str() {
            Some(name) => format!("type {name}"),
            None if schema["x-kubernetes-int-or-string"] == Value::Bool(true) => {
                "integer or string".to_owned()
            }
            None => "any type".to_owned(),
        };
        let direction = match (before["type"].as_str(), after["type"].as_str()) {
            (None, Some(_)) => Direction::Less,
            (Some("integer"), Some("number")) | (Some(_), None) => Direction::More,
            _ => Direction::Other,
        };
        self.add(
            direction,
            format!("`{at}`: {} instead of {}", name(after), name(before)),
        );
    }

    fn compare_flags(&mut self, before: &Value, after: &Value, at: &str, is_optional: bool) {
        let is_nullable = |schema: &Value| schema["nullable"] == Value::Bool(true);
        if !is_optional && is_nullable(before) && !is_nullable(after) {
            self.add(Direction::Less, format!("`{at}`: null is refused"));
        }
        if is_nullable(after) && !is_nullable(before) {
            self.add(Direction::More, format!("`{at}`: null is accepted"));
        }
        for (key, word) in [
            ("x-kubernetes-list-type", "list type"),
            ("x-kubernetes-map-type", "map type"),
            ("x-kubernetes-list-map-keys", "list map keys"),
        ] {
            let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let (old, new) = (&before[key], &after[key]);
            if old != new {
                let word = match (old.is_null(), new.is_null()) {
                    (true, _) => format!("`{at}`: {word} {}", shown(new)),
                    (_, true) => format!("`{at}`: no {word}; it was {}", shown(old)),
                    _ => format!("`{at}`: {word} {} instead of {}", shown(new), shown(old)),
                };
                self.add(Direction::Other, word);
            }
        }
    }

    fn compare_bounds(&mut self, before: &Value, after: &Value, at: &str) {
        for (side, sign) in [(Side::Lower, 1.0), (Side::Upper, -1.0)] {
            for key in KEYS.iter().filter(|key| key.side == Some(side)) {
                let key = key.name;
                let (old, new) = (before[key].as_f64(), after[key].as_f64());
                let is_tighter = match (old, new) {
                    (None, Some(_)) => true,
                    (Some(old), Some(new)) => (new - old) * sign > 0.0,
                    _ => false,
                };
                let is_looser = match (old, new) {
                    (Some(_), None) => true,
                    (Some(old), Some(new)) => (new - old) * sign < 0.0,
                    _ => false,
                };
                let shown = |value: &Value| match value.as_f64() {
                    Some(number) if number.fract() == 0.0 && number.abs() < 1e15 => format!("{number:.0}"),
                    Some(number) => number.to_string(),
                    None => "none".to_owned(),
                };
                let words = format!(
                    "`{at}`: {key} {}; it was {}",
                    shown(&after[key]),
                    shown(&before[key])
                );
                match (is_tighter, is_looser) {
                    (true, _) => self.add(Direction::Less, words),
                    (_, true) => self.add(Direction::More, words),
                    _ => {}
                }
            }
        }
        for key in ["pattern", "multipleOf"] {
            self.compare_constraints(before, after, key, at);
        }
        // The API server only warns about unknown formats.
        let checked = |schema: &Value| {
            let format = schema["format"].as_str().filter(|format| !is_unchecked(format));
            serde_json::json!({ "format": format })
        };
        self.compare_constraints(&checked(before), &checked(after), "format", at);
    }

    fn compare_constraints(&mut self, before: &Value, after: &Value, key: &str, at: &str) {
        let (old, new) = (&before[key], &after[key]);
        if old == new {
            return;
        }
        let (direction, words) = match (old.is_null(), new.is_null()) {
            (true, _) => (Direction::Less, format!("`{at}`: {key} {new}")),
            (_, true) => (Direction::More, format!("`{at}`: no {key}; it was {old}")),
            _ => (Direction::Other, format!("`{at}`: {key} {new} instead of {old}")),
        };
        self.add(direction, words);
    }

    fn compare_enumerations(&mut self, before: &Value, after: &Value, at: &str) {
        let values = |schema: &Value| -> Option<Vec<Value>> {
            let values = schema["enum"].as_array()?;
            Some(values.iter().filter(|value| !value.is_null()).cloned().collect())
        };
        match (values(before), values(after)) {
            (None, Some(new)) => {
                let shown: Vec<String> = new.iter().take(4).map(Value::to_string).collect();
                self.add(
                    Direction::Less,
                    format!("`{at}`: only {} are accepted", shown.join(", ")),
                );
            }
            (Some(_), None) => self.add(Direction::More, format!("`{at}`: any value is accepted")),
            (Some(old), Some(new)) => {
                for value in old.iter().filter(|value| !new.contains(value)) {
                    self.add(Direction::Less, format!("`{at}`: {value} is refused"));
                }
                for value in new.iter().filter(|value| !old.contains(value)) {
                    self.add(Direction::More, format!("`{at}`: {value} is accepted"));
                }
            }
            (None, None) => {}
        }
    }

    fn compare_rules(&mut self, before: &Value, after: &Value, at: &str) {
        let rules = |schema: &Value| -> Vec<String> {
            list(&schema["x-kubernetes-validations"])
                .into_iter()
                .filter_map(|rule| Some(rule["rule"].as_str()?.trim().to_owned()))
                .collect()
        };
        let (old, new) = (rules(before), rules(after));
        for rule in new.iter().filter(|rule| !old.contains(rule)) {
            self.add(Direction::Less, format!("`{at}`: new rule {rule:?}"));
        }
        for rule in old.iter().filter(|rule| !new.contains(rule)) {
            self.add(Direction::More, format!("`{at}`: without the rule {rule:?}"));
        }
    }

    /// Only checks `oneOf`, `anyOf`, `allOf` and `not` for equality.
    fn compare_alternatives(&mut self, before: &Value, after: &Value, at: &str) {
        for key in ["oneOf", "anyOf", "allOf", "not"] {
            let (old, new) = (without_words(&before[key]), without_words(&after[key]));
            // Both forms of an int-or-string are equivalent.
            if old == new || key == "anyOf" && is_int_or_string(before) && is_int_or_string(after) {
                continue;
            }
            match (old.is_null(), new.is_null()) {
                (true, _) => self.add(Direction::Less, format!("`{at}`: new constraint {key}")),
                (_, true) => self.add(Direction::More, format!("`{at}`: without the constraint {key}")),
                _ => self.add(Direction::Other, format!("`{at}`: {key} differs")),
            }
        }
    }

    fn compare_defaults(&mut self, before: &Value, after: &Value, at: &str) {
        let (old, new) = (&before["default"], &after["default"]);
        if same_value(old, new) {
            return;
        }
        // A null default is no default.
        let words = match (old.is_null(), new.is_null()) {
            (true, _) => format!("`{at}`: default {new}"),
            (_, true) => format!("`{at}`: no default; it was {old}"),
            _ => format!("`{at}`: default {new} instead of {old}"),
        };
        self.add(Direction::Other, words);
    }

    fn compare_fields(&mut self, before: &Value, after: &Value, path: &str) {
        let properties = |schema: &Value| schema["properties"].as_object().cloned().unwrap_or_default();
        let (old, new) = (properties(before), properties(after));
        let required = |schema: &Value| -> BTreeSet<String> {
            let names = list(&schema["required"]).into_iter().filter_map(Value::as_str);
            names.map(str::to_owned).collect()
        };
        let (must_old, must_new) = (required(before), required(after));
        for name in must_new.difference(&must_old) {
            self.add(
                Direction::Less,
                format!("`{path}.{name}` is required: {} is refused", example(path, name)),
            );
        }
        for name in must_old.difference(&must_new) {
            self.add(Direction::More, format!("`{path}.{name}` is optional"));
        }
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            let words = format!("`{path}.{name}` is missing: it is dropped from objects");
            let is_kept = keeps_unknown_fields(after) || after["additionalProperties"].is_object();
            if !is_kept {
                self.add(Direction::Less, words);
            }
        }
        for name in new.keys().filter(|name| !old.contains_key(*name)) {
            if !keeps_unknown_fields(before) {
                self.add(Direction::More, format!("`{path}.{name}` is new"));
            }
        }
        for (name, schema) in &new {
            if let Some(known) = old.get(name) {
                let is_optional = !must_new.contains(name);
                self.compare_schemas(known, schema, &format!("{path}.{name}"), is_optional);
            }
        }
    }
}

/// Whether unknown fields are preserved. No effect on scalars, which have no fields.
fn keeps_unknown_fields(schema: &Value) -> bool {
    let is_scalar = matches!(
        schema["type"].as_str(),
        Some("boolean" | "integer" | "number" | "string")
    );
    !is_scalar && schema["x-kubernetes-preserve-unknown-fields"] == Value::Bool(true)
}

fn is_int_or_string(schema: &Value) -> bool {
    let alternatives = without_words(&schema["anyOf"]);
    let is_plain = alternatives.is_null()
        || alternatives == serde_json::json!([{ "type": "integer" }, { "type": "string" }]);
    schema["x-kubernetes-int-or-string"] == Value::Bool(true) && is_plain
}

/// Example of an object that lacks a field, in YAML flow style.
fn example(path: &str, name: &str) -> String {
    let inner = path
        .trim_start_matches('.')
        .rsplit('.')
        .next()
        .unwrap_or_default();
    match inner {
        "" => format!("an object without `{name}`"),
        inner => format!("`{inner}: {{}}` without `{name}`"),
    }
}

fn is_unchecked(format: &str) -> bool {
    let is_integer = format
        .strip_prefix('u')
        .unwrap_or(format)
        .strip_prefix("int")
        .is_some_and(|rest| rest.is_empty() || rest.bytes().all(|byte| byte.is_ascii_digit()));
    is_integer || matches!(format, "float" | "double" | "partial-date-time" | "ip")
}

fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            names.into_iter().all(|name| {
                same_value(
                    a.get(name).unwrap_or(&Value::Null),
                    b.get(name).unwrap_or(&Value::Null),
                )
            })
        }
        (a, b) => a == b,
    }
}

/// Drops descriptive keys and `nullable`, which don't make alternatives different.
fn without_words(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(without_words).collect(),
        Value::Object(map) => map
            .iter()
            .filter(|(key, value)| {
                !matches!(key.as_str(), "description" | "title" | "nullable" | "format") || value.is_object()
            })
            .map(|(key, value)| (key.clone(), without_words(value)))
            .collect(),
        other => other.clone(),
    }
}
