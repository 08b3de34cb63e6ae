//! Bounds, patterns, formats, enumerations and alternatives.

use std::cmp::Ordering;

use rbuilder_schema::{FORMATS, Form, KEYS, Key, Schema, Side, compare_numbers};
use serde_json::{Number, Value, json};

use super::{Comparison, Probe};
use crate::path::Path;
use crate::witness::Candidate;

struct Bound {
    key: &'static str,
    side: Side,
    value: Option<Number>,
    is_exclusive: bool,
}

fn bounds(schema: &Schema) -> Vec<Bound> {
    let bound = |key: &'static Key| {
        let (value, is_exclusive) = match (key.form, key.side?) {
            (Form::Number(number), Side::Lower) => (number.get(schema).clone(), schema.exclusive_minimum),
            (Form::Number(number), Side::Upper) => (number.get(schema).clone(), schema.exclusive_maximum),
            (Form::Count(count), _) => (count.get(schema).map(Number::from), false),
            _ => return None,
        };
        Some(Bound {
            key: key.name,
            side: key.side?,
            is_exclusive: is_exclusive && value.is_some(),
            value,
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
                    self.add_searched(after.rule(before), path, message, (old, new), false);
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
                self.add_searched(
                    "multiple-of-added",
                    path,
                    format!("multipleOf {after}"),
                    (old, new),
                    false,
                );
            }
            (Some(before), None) => {
                let message = format!("no multipleOf instead of {before}");
                self.add("multiple-of-removed", path, message, Probe::Nothing);
            }
            (Some(before), Some(after)) if compare_numbers(before, after) != Ordering::Equal => {
                let message = format!("multipleOf {after} instead of {before}");
                self.add_searched("multiple-of-changed", path, message, (old, new), false);
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
                self.add_searched("enum-added", path, message, (old, new), false);
            }
            (false, true) => {
                let message = format!("no enum instead of {}", json!(before));
                self.add("enum-removed", path, message, Probe::Nothing);
            }
            (false, false) => self.compare_values(before, after, path),
        }
    }

    fn compare_values(&mut self, before: &[Value], after: &[Value], path: &Path) {
        for value in before.iter().filter(|value| !after.contains(value)) {
            let probe = Probe::Values {
                path: path.clone(),
                candidates: vec![Candidate::Value(value.clone())],
                reads: false,
            };
            self.add("enum-value-removed", path, format!("enum without {value}"), probe);
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
                self.add_searched(
                    "pattern-added",
                    path,
                    format!("pattern `{after}`"),
                    (old, new),
                    false,
                );
            }
            (Some(before), None) => {
                let message = format!("no pattern instead of `{before}`");
                self.add("pattern-removed", path, message, Probe::Nothing);
            }
            (Some(before), Some(after)) if before != after => {
                let message = format!("pattern `{after}` instead of `{before}`");
                self.add_searched("pattern-changed", path, message, (old, new), false);
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
        match (before.filter(known), after.filter(known)) {
            (None, None) => self.add("format-ignored", path, message, Probe::Nothing),
            (Some(_), None) => self.add("format-removed", path, message, Probe::Nothing),
            (None, Some(_)) => self.add_searched("format-added", path, message, (old, new), false),
            (Some(_), Some(_)) => self.add_searched("format-changed", path, message, (old, new), false),
        }
    }

    pub(super) fn compare_alternatives(&mut self, old: &Schema, new: &Schema, path: &Path) {
        for key in ["allOf", "anyOf", "oneOf", "not"] {
            let (before, after) = (alternatives(old, key), alternatives(new, key));
            if before == after {
                continue;
            }
            match (before.is_null(), after.is_null()) {
                (true, _) => {
                    self.add_searched(
                        "alternatives-added",
                        path,
                        format!("new {key}"),
                        (old, new),
                        false,
                    );
                }
                (_, true) => self.add("alternatives-removed", path, format!("no {key}"), Probe::Nothing),
                _ => self.add_searched(
                    "alternatives-changed",
                    path,
                    format!("another {key}"),
                    (old, new),
                    false,
                ),
            }
        }
    }
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
