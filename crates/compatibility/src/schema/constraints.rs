//! Bounds, patterns, formats, enumerations and alternatives.

use std::cmp::Ordering;

use rbuilder_schema::{FORMATS, Form, KEYS, Key, Schema, SchemaType, Side, compare_numbers};
use serde_json::{Number, Value, json};

use super::alone::{Alone, accepts, with_keys};
use super::integers::outermost_integer;
use super::{Comparison, Probe};
use crate::path::Path;
use crate::witness::Candidate;

struct Bound {
    key: &'static str,
    side: Side,
    value: Option<Number>,
    is_exclusive: bool,
    /// The outermost integer that the bound accepts. `None` if values aren't integers.
    integer: Option<i64>,
}

fn bounds(schema: &Schema) -> Vec<Bound> {
    let bound = |key: &'static Key| {
        let (value, is_exclusive) = match (key.form, key.side?) {
            (Form::Number(number), Side::Lower) => (number.get(schema).clone(), schema.exclusive_minimum),
            (Form::Number(number), Side::Upper) => (number.get(schema).clone(), schema.exclusive_maximum),
            (Form::Count(count), _) => (count.get(schema).map(Number::from), false),
            _ => return None,
        };
        let side = key.side?;
        let is_exclusive = is_exclusive && value.is_some();
        let integer = match (schema.schema_type, &value) {
            (Some(SchemaType::Integer), Some(value)) => outermost_integer(value, side, is_exclusive),
            _ => None,
        };
        Some(Bound {
            key: key.name,
            side,
            value,
            is_exclusive,
            integer,
        })
    };
    KEYS.iter().filter_map(bound).collect()
}

impl Bound {
    fn describe(&self) -> String {
        let exclusive = if self.is_exclusive { " (exclusive)" } else { "" };
        match &self.value {
            Some(value) => format!("{} {value}{exclusive}", self.key),
            None => format!("no {}", self.key),
        }
    }

    /// Compares how strict two bounds are. The greater one accepts fewer values.
    fn strictness(&self, old: &Bound) -> Ordering {
        // Different texts may mean the same set of integers, e.g. `< 600` and `<= 599`.
        if let (Some(new), Some(old)) = (self.integer, old.integer) {
            return match self.side {
                Side::Lower => new.cmp(&old),
                Side::Upper => old.cmp(&new),
            };
        }
        let order = match (&self.value, &old.value) {
            (None, None) => Ordering::Equal,
            (Some(_), None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (Some(new), Some(old)) => match self.side {
                Side::Lower => compare_numbers(new, old),
                Side::Upper => compare_numbers(old, new),
            },
        };
        order.then(self.is_exclusive.cmp(&old.is_exclusive))
    }

    /// The keys of the bound in a schema.
    fn keys(&self) -> &'static [&'static str] {
        match self.key {
            "minimum" => &["minimum", "exclusiveMinimum"],
            "maximum" => &["maximum", "exclusiveMaximum"],
            "minLength" => &["minLength"],
            "maxLength" => &["maxLength"],
            "minItems" => &["minItems"],
            "maxItems" => &["maxItems"],
            "minProperties" => &["minProperties"],
            _ => &["maxProperties"],
        }
    }

    fn rule(&self, old: &Bound) -> &'static str {
        let is_stricter = self.strictness(old) == Ordering::Greater;
        match (self.side, &old.value, &self.value) {
            (Side::Lower, None, _) => "minimum-added",
            (Side::Upper, None, _) => "maximum-added",
            (Side::Lower, _, None) => "minimum-removed",
            (Side::Upper, _, None) => "maximum-removed",
            (Side::Lower, ..) if is_stricter => "minimum-raised",
            (Side::Lower, ..) => "minimum-lowered",
            (Side::Upper, ..) if is_stricter => "maximum-lowered",
            (Side::Upper, ..) => "maximum-raised",
        }
    }
}

impl Comparison {
    pub(super) fn compare_constraints(&mut self, old: &Schema, new: &Schema, path: &Path) {
        for (before, after) in bounds(old).iter().zip(&bounds(new)) {
            match after.strictness(before) {
                Ordering::Equal => {}
                // Trivial bound: lengths and item counts are never negative.
                Ordering::Greater if is_trivial(after) => {}
                Ordering::Greater => {
                    let message = describe_change(&before.describe(), &after.describe());
                    let alone = with_keys(old, new, after.keys());
                    self.add_narrowing(after.rule(before), path, message, (old, alone));
                }
                Ordering::Less => {
                    let message = describe_change(&before.describe(), &after.describe());
                    self.add(after.rule(before), path, message, Probe::Nothing);
                }
            }
        }
        self.compare_multiples(old, new, path);
        self.compare_enumerations(old, new, path);
        self.compare_patterns(old, new, path);
        self.compare_formats(old, new, path);
    }

    fn compare_multiples(&mut self, old: &Schema, new: &Schema, path: &Path) {
        match (&old.multiple_of, &new.multiple_of) {
            (None, Some(after)) => {
                let alone = with_keys(old, new, &["multipleOf"]);
                self.add_narrowing(
                    "multiple-of-added",
                    path,
                    format!("multipleOf {after}"),
                    (old, alone),
                );
            }
            (Some(before), None) => {
                let message = format!("no multipleOf instead of {before}");
                self.add("multiple-of-removed", path, message, Probe::Nothing);
            }
            (Some(before), Some(after)) if compare_numbers(before, after) != Ordering::Equal => {
                let message = format!("multipleOf {after} instead of {before}");
                let alone = with_keys(old, new, &["multipleOf"]);
                self.add_narrowing("multiple-of-changed", path, message, (old, alone));
            }
            _ => {}
        }
    }

    fn compare_enumerations(&mut self, old: &Schema, new: &Schema, path: &Path) {
        let (before, after) = (&old.enumeration, &new.enumeration);
        match (before.is_empty(), after.is_empty()) {
            (true, true) => {}
            (true, false) => {
                let message = format!("enum {}", json!(after));
                let alone = with_keys(old, new, &["enum"]);
                self.add_narrowing("enum-added", path, message, (old, alone));
            }
            (false, true) => {
                let message = format!("no enum instead of {}", json!(before));
                self.add("enum-removed", path, message, Probe::Nothing);
            }
            (false, false) => self.compare_values(old, after, path),
        }
    }

    fn compare_values(&mut self, old: &Schema, after: &[Value], path: &Path) {
        let before = &old.enumeration;
        for value in before.iter().filter(|value| !after.contains(value)) {
            let message = format!("enum without {value}");
            if !accepts(old, value) {
                let message = format!("{message}, which was refused anyway");
                self.add("enum-value-removed", path, message, Probe::Unaffected);
                continue;
            }
            let probe = Probe::Values {
                path: path.clone(),
                candidates: vec![Candidate::Value(value.clone())],
                reads: false,
                alone: Alone::at(path, without_value(old, value, after)),
            };
            self.add("enum-value-removed", path, message, probe);
        }
        for value in after.iter().filter(|value| !before.contains(value)) {
            self.add(
                "enum-value-added",
                path,
                format!("enum with {value}"),
                Probe::Nothing,
            );
        }
    }

    fn compare_patterns(&mut self, old: &Schema, new: &Schema, path: &Path) {
        match (&old.pattern, &new.pattern) {
            (None, Some(after)) => {
                let alone = with_keys(old, new, &["pattern"]);
                self.add_narrowing("pattern-added", path, format!("pattern `{after}`"), (old, alone));
            }
            (Some(before), None) => {
                let message = format!("no pattern instead of `{before}`");
                self.add("pattern-removed", path, message, Probe::Nothing);
            }
            (Some(before), Some(after)) if before != after => {
                let message = format!("pattern `{after}` instead of `{before}`");
                let alone = with_keys(old, new, &["pattern"]);
                self.add_narrowing("pattern-changed", path, message, (old, alone));
            }
            _ => {}
        }
    }

    fn compare_formats(&mut self, old: &Schema, new: &Schema, path: &Path) {
        let known = |format: &&str| FORMATS.contains(format);
        let (before, after) = (old.format.as_deref(), new.format.as_deref());
        if before == after {
            return;
        }
        let shown = |format: Option<&str>| {
            format.map_or_else(|| "no format".to_owned(), |format| format!("format {format}"))
        };
        let message = describe_change(&shown(before), &shown(after));
        let name = match (before.filter(known), after.filter(known)) {
            (None, None) => return self.add("format-ignored", path, message, Probe::Nothing),
            (Some(_), None) => return self.add("format-removed", path, message, Probe::Nothing),
            (None, Some(_)) => "format-added",
            (Some(_), Some(_)) => "format-changed",
        };
        self.add_narrowing(name, path, message, (old, with_keys(old, new, &["format"])));
    }

    pub(super) fn compare_alternatives(&mut self, old: &Schema, new: &Schema, path: &Path) {
        for key in ["allOf", "anyOf", "oneOf", "not"] {
            let (before, after) = (alternatives(old, key), alternatives(new, key));
            if before == after {
                continue;
            }
            match (before.is_null(), after.is_null()) {
                (true, _) => {
                    let alone = with_keys(old, new, &[key]);
                    self.add_narrowing("alternatives-added", path, format!("new {key}"), (old, alone));
                }
                (_, true) => self.add("alternatives-removed", path, format!("no {key}"), Probe::Nothing),
                _ => {
                    let alone = with_keys(old, new, &[key]);
                    self.add_narrowing(
                        "alternatives-changed",
                        path,
                        format!("another {key}"),
                        (old, alone),
                    );
                }
            }
        }
    }
}

fn without_value(old: &Schema, value: &Value, after: &[Value]) -> Schema {
    let mut node = old.clone();
    node.enumeration.retain(|other| other != value);
    // Without values, there would be no enumeration.
    if node.enumeration.is_empty() {
        node.enumeration = after.to_vec();
    }
    node
}

fn is_trivial(bound: &Bound) -> bool {
    bound.key.starts_with("min")
        && bound.key != "minimum"
        && bound.value.as_ref().and_then(Number::as_u64) == Some(0)
}

/// Formats e.g. `maximum 5 instead of 9`, without repeating "maximum".
fn describe_change(before: &str, after: &str) -> String {
    match (before.split_once(' '), after.split_once(' ')) {
        (Some(("no", _)), _) => after.to_owned(),
        (Some((key, before)), Some((same, _))) if key == same => format!("{after} instead of {before}"),
        (Some((_, before)), Some(("no", _))) => format!("{after} instead of {before}"),
        _ => format!("{after} instead of {before}"),
    }
}

/// The value validations under a key, minus what the API server ignores.
fn alternatives(schema: &Schema, key: &str) -> Value {
    // Implied by `x-kubernetes-int-or-string`.
    if schema.int_or_string && key == "anyOf" {
        return Value::Null;
    }
    let all = serde_json::to_value(Schema {
        all_of: schema.all_of.clone(),
        any_of: schema.any_of.clone(),
        one_of: schema.one_of.clone(),
        not: schema.not.clone(),
        ..Schema::default()
    });
    all.map(|mut all| without_words(all[key].take()))
        .unwrap_or_default()
}

fn without_words(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(without_words).collect(),
        Value::Object(fields) => {
            let kept = fields
                .into_iter()
                .filter(|(name, value)| name != "description" || !value.is_string());
            Value::Object(kept.map(|(name, value)| (name, without_words(value))).collect())
        }
        other => other,
    }
}
