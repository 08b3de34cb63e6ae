//! Structural comparison of a committed CRD with the generated one: which objects does only one of them accept?
//!
//! Descriptions, titles, the order of lists and metadata are not differences. A `null` for an optional field is none either:
//! the API server drops it where the schema does not take it.

use std::collections::BTreeSet;

use serde_json::Value;

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Verdict {
    Same,
    /// The generated CRD accepts, or keeps, more.
    Richer,
    /// It accepts, or keeps, less.
    Narrower,
    /// More of one thing and less of another, or something that is neither.
    Different,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Verdict::Same => "same",
            Verdict::Richer => "richer",
            Verdict::Narrower => "narrower",
            Verdict::Different => "different",
        }
    }
}

/// The direction of a difference, as seen from the generated CRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    More,
    Less,
    Other,
}

/// The differences of two CRDs.
#[derive(Debug, Default)]
pub(in crate::commands) struct Comparison {
    found: BTreeSet<(Direction, String)>,
}

/// Prints a difference with the fields that have it; the text of one that has no fields is in their place.
fn print_group((difference, fields): (String, Vec<String>)) -> String {
    match fields.as_slice() {
        [only] if difference.is_empty() => only.clone(),
        [only] => format!("{only}: {difference}"),
        [one, other] => format!("{one}, {other}: {difference}"),
        [first, rest @ ..] => format!("{first} and {} more fields: {difference}", rest.len()),
        [] => difference,
    }
}

impl Comparison {
    /// Compares the generated CRD with the committed one.
    pub(in crate::commands) fn of(committed: &Value, generated: &Value) -> Comparison {
        let mut comparison = Comparison::default();
        comparison.compare_names(&committed["spec"], &generated["spec"]);
        let (old, new) = (versions(committed), versions(generated));
        for (name, version) in &new {
            match old.iter().find(|(known, _)| known == name) {
                Some((_, before)) => comparison.compare_versions(name, before, version),
                None => comparison.add(Direction::More, format!("version `{name}` is new")),
            }
        }
        for (name, _) in old
            .iter()
            .filter(|(name, _)| new.iter().all(|(known, _)| known != name))
        {
            comparison.add(Direction::Less, format!("version `{name}` is missing"));
        }
        comparison
    }

    pub(in crate::commands) fn verdict(&self) -> Verdict {
        let has = |direction| self.found.iter().any(|(found, _)| *found == direction);
        match (has(Direction::More), has(Direction::Less), has(Direction::Other)) {
            (false, false, false) => Verdict::Same,
            (true, false, false) => Verdict::Richer,
            (false, true, false) => Verdict::Narrower,
            _ => Verdict::Different,
        }
    }

    /// The differences in words, those that refuse or drop something first.
    pub(in crate::commands) fn words(&self) -> Vec<String> {
        let rank = |direction: &Direction| match direction {
            Direction::Less => 0,
            Direction::Other => 1,
            Direction::More => 2,
        };
        let mut found: Vec<&(Direction, String)> = self.found.iter().collect();
        found.sort_by_key(|(direction, _)| rank(direction));
        found.into_iter().map(|(_, words)| words.clone()).collect()
    }

    /// The differences as [`words`](Self::words) has them, with those that are the same at several fields on one line: another schema
    /// of a type that Kubernetes has differs at each of its uses.
    pub(in crate::commands) fn grouped_words(&self) -> Vec<String> {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for words in self.words() {
            let (field, rest) = match words.split_once("`: ") {
                Some((field, rest)) if field.starts_with("`.") => (format!("{field}`"), rest.to_owned()),
                _ => (words, String::new()),
            };
            match groups
                .iter_mut()
                .find(|(known, _)| *known == rest && !rest.is_empty())
            {
                Some((_, fields)) => fields.push(field),
                None => groups.push((rest, vec![field])),
            }
        }
        groups.into_iter().map(print_group).collect()
    }

    fn add(&mut self, direction: Direction, words: String) {
        self.found.insert((direction, words));
    }

    fn compare_names(&mut self, before: &Value, after: &Value) {
        for (what, before, after) in [
            ("scope", &before["scope"], &after["scope"]),
            ("kind", &before["names"]["kind"], &after["names"]["kind"]),
            ("plural", &before["names"]["plural"], &after["names"]["plural"]),
        ] {
            if before != after {
                self.add(Direction::Other, format!("{what} {after} instead of {before}"));
            }
        }
        for what in ["shortNames", "categories"] {
            let (before, after) = (list(&before["names"][what]), list(&after["names"][what]));
            self.compare_sets(&before, &after, what);
        }
        if before["conversion"]["strategy"] == "Webhook" && after["conversion"]["strategy"] != "Webhook" {
            self.add(
                Direction::Less,
                "the conversion webhook is missing: write it with `#[crd(conversion(…))]`".to_owned(),
            );
        }
    }

    fn compare_sets(&mut self, before: &[&Value], after: &[&Value], what: &str) {
        for (direction, one, other, word) in [
            (Direction::Less, before, after, "without"),
            (Direction::More, after, before, "with"),
        ] {
            for value in one.iter().filter(|value| !other.contains(value)) {
                self.add(direction, format!("{what} {word} {value}"));
            }
        }
    }

    fn compare_versions(&mut self, name: &str, before: &Value, after: &Value) {
        for flag in ["served", "storage"] {
            if before[flag] != after[flag] {
                self.add(
                    Direction::Other,
                    format!(
                        "version `{name}` has {flag}: {} instead of {}",
                        after[flag], before[flag]
                    ),
                );
            }
        }
        for what in ["status", "scale"] {
            let (before, after) = (&before["subresources"][what], &after["subresources"][what]);
            match (before.is_null(), after.is_null()) {
                (false, true) => self.add(Direction::Less, format!("the subresource `{what}` is missing")),
                (true, false) => self.add(Direction::Other, format!("the subresource `{what}` is new")),
                (false, false) if before != after => {
                    self.add(Direction::Other, format!("the subresource `{what}` differs"));
                }
                _ => {}
            }
        }
        let columns = |version: &Value| -> Vec<String> {
            list(&version["additionalPrinterColumns"])
                .into_iter()
                .map(|column| format!("{} ({})", column["name"], column["jsonPath"]))
                .collect()
        };
        let (old, new) = (columns(before), columns(after));
        for column in old.iter().filter(|column| !new.contains(column)) {
            self.add(
                Direction::Other,
                format!("the printer column {column} is missing"),
            );
        }
        for column in new.iter().filter(|column| !old.contains(column)) {
            self.add(Direction::Other, format!("the printer column {column} is new"));
        }
        let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
        self.compare_root(&schema(before), &schema(after));
    }

    /// Every object has `apiVersion`, `kind` and `metadata`, whether or not the schema says so.
    fn compare_root(&mut self, before: &Value, after: &Value) {
        let trimmed = |schema: &Value| {
            let mut schema = schema.clone();
            if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
                ["apiVersion", "kind", "metadata"]
                    .iter()
                    .for_each(|name| drop(properties.remove(*name)));
            }
            schema
        };
        self.compare_schemas(&trimmed(before), &trimmed(after), "", true);
    }

    /// Compares the schemas of the value at a path. A `null` there is dropped if the value is an optional field.
    fn compare_schemas(&mut self, before: &Value, after: &Value, path: &str, is_optional: bool) {
        let at = if path.is_empty() { "." } else { path };
        // A scalar has no fields.
        let is_scalar = |schema: &Value| {
            let scalars = ["boolean", "integer", "number", "string"];
            schema["type"]
                .as_str()
                .is_some_and(|name| scalars.contains(&name))
        };
        let keeps = |schema: &Value| {
            !is_scalar(schema) && schema["x-kubernetes-preserve-unknown-fields"] == Value::Bool(true)
        };
        if before["type"] != after["type"] {
            return self.compare_types(before, after, at);
        }
        match (keeps(before), keeps(after)) {
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
            } else if old.is_object() && !keeps(after) {
                self.add(Direction::Less, format!("`{at}`: entries are dropped"));
            } else if new.is_object() && !keeps(before) {
                self.add(Direction::More, format!("`{at}`: entries are kept"));
            }
        }
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
        const LOWER: [&str; 4] = ["minimum", "minLength", "minItems", "minProperties"];
        const UPPER: [&str; 4] = ["maximum", "maxLength", "maxItems", "maxProperties"];
        for (keys, sign) in [(LOWER, 1.0), (UPPER, -1.0)] {
            for key in keys {
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
        // Of the formats that the API server does not know, it warns, and checks nothing.
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

    /// `oneOf`, `anyOf`, `allOf` and `not` constrain an object in ways that are not followed here.
    fn compare_alternatives(&mut self, before: &Value, after: &Value, at: &str) {
        for key in ["oneOf", "anyOf", "allOf", "not"] {
            let (old, new) = (without_words(&before[key]), without_words(&after[key]));
            // `x-kubernetes-int-or-string` says the same.
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
        // A default of null is none.
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
        // A scalar has no fields.
        let is_scalar = |schema: &Value| {
            let scalars = ["boolean", "integer", "number", "string"];
            schema["type"]
                .as_str()
                .is_some_and(|name| scalars.contains(&name))
        };
        let keeps = |schema: &Value| {
            !is_scalar(schema) && schema["x-kubernetes-preserve-unknown-fields"] == Value::Bool(true)
        };
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
            let is_kept = keeps(after) || after["additionalProperties"].is_object();
            if !is_kept {
                self.add(Direction::Less, words);
            }
        }
        for name in new.keys().filter(|name| !old.contains_key(*name)) {
            if !keeps(before) {
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

/// Returns true if the API server takes an integer or a string, whatever else is said.
fn is_int_or_string(schema: &Value) -> bool {
    let alternatives = without_words(&schema["anyOf"]);
    let is_plain = alternatives.is_null()
        || alternatives == serde_json::json!([{ "type": "integer" }, { "type": "string" }]);
    schema["x-kubernetes-int-or-string"] == Value::Bool(true) && is_plain
}

/// An object without a field, as people write it.
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

/// Formats that schemars writes and the API server does not know.
fn is_unchecked(format: &str) -> bool {
    let is_integer = format
        .strip_prefix('u')
        .unwrap_or(format)
        .strip_prefix("int")
        .is_some_and(|rest| rest.is_empty() || rest.bytes().all(|byte| byte.is_ascii_digit()));
    is_integer || matches!(format, "float" | "double" | "partial-date-time" | "ip")
}

/// A value with numbers in one form: `1.0` is `1`.
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

/// A schema without what is for people, and without `nullable`.
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

fn list(value: &Value) -> Vec<&Value> {
    value
        .as_array()
        .map(|list| list.iter().collect())
        .unwrap_or_default()
}

fn versions(crd: &Value) -> Vec<(String, &Value)> {
    let versions = list(&crd["spec"]["versions"]).into_iter();
    versions
        .map(|version| (version["name"].as_str().unwrap_or_default().to_owned(), version))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(spec: Value) -> Value {
        json!({ "spec": { "scope": "Namespaced", "names": { "kind": "Cup", "plural": "cups" }, "versions": [
            { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "properties": { "spec": spec } } } },
        ] } })
    }

    #[track_caller]
    fn check(before: Value, after: Value, verdict: Verdict, words: &[&str]) {
        let comparison = Comparison::of(&crd(before), &crd(after));
        assert_eq!(comparison.words(), words);
        assert_eq!(comparison.verdict(), verdict);
    }

    #[test]
    fn words_numbers_and_nulls_are_no_difference() {
        check(
            json!({ "type": "object", "description": "Old.", "properties": {
                "a": { "type": "integer", "format": "int32", "minimum": 0.0, "nullable": true, "default": 1.0 },
                "b": { "type": "string", "enum": ["A", null], "nullable": true } } }),
            json!({ "type": "object", "properties": {
                "a": { "type": "integer", "format": "int64", "minimum": 0, "default": 1 },
                "b": { "type": "string", "enum": ["A"] } } }),
            Verdict::Same,
            &[],
        );
    }

    #[test]
    fn a_difference_of_several_fields_is_one_line() {
        let fields = |schema: Value| {
            let properties = ["a", "b", "c"].map(|name| (name.to_owned(), schema.clone()));
            json!({ "type": "object", "properties": serde_json::Map::from_iter(properties) })
        };
        let comparison = Comparison::of(
            &crd(fields(json!({ "type": "string" }))),
            &crd(fields(json!({ "type": "string", "maxLength": 3 }))),
        );
        assert_eq!(
            comparison.grouped_words(),
            ["`.spec.a` and 2 more fields: maxLength 3; it was none"]
        );
        assert_eq!(comparison.words().len(), 3);
    }

    #[test]
    fn fields_and_requirements() {
        let one = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        let two = json!({ "type": "object", "required": ["b"], "properties": {
            "a": { "type": "string" }, "b": { "type": "string" } } });
        check(
            two.clone(),
            one.clone(),
            Verdict::Different,
            &[
                "`.spec.b` is missing: it is dropped from objects",
                "`.spec.b` is optional",
            ],
        );
        check(
            one.clone(),
            two,
            Verdict::Different,
            &[
                "`.spec.b` is required: `spec: {}` without `b` is refused",
                "`.spec.b` is new",
            ],
        );
        let more = json!({ "type": "object", "properties": { "a": { "type": "string" }, "c": { "type": "string" } } });
        check(one, more, Verdict::Richer, &["`.spec.c` is new"]);
        let idle = json!({ "type": "string", "x-kubernetes-preserve-unknown-fields": true });
        check(idle, json!({ "type": "string" }), Verdict::Same, &[]);
    }

    #[test]
    fn constraints() {
        let field = |schema: Value| json!({ "type": "object", "properties": { "a": schema } });
        for (before, after, verdict, words) in [
            (
                json!({ "maximum": 9 }),
                json!({ "maximum": 5 }),
                Verdict::Narrower,
                "`.spec.a`: maximum 5; it was 9",
            ),
            (
                json!({ "minLength": 2 }),
                json!({}),
                Verdict::Richer,
                "`.spec.a`: minLength none; it was 2",
            ),
            (
                json!({ "enum": ["A", "B"] }),
                json!({ "enum": ["A"] }),
                Verdict::Narrower,
                "`.spec.a`: \"B\" is refused",
            ),
            (
                json!({}),
                json!({ "pattern": "^a" }),
                Verdict::Narrower,
                "`.spec.a`: pattern \"^a\"",
            ),
            (
                json!({ "default": 1 }),
                json!({}),
                Verdict::Different,
                "`.spec.a`: no default; it was 1",
            ),
            (
                json!({}),
                json!({ "type": "string" }),
                Verdict::Narrower,
                "`.spec.a`: type string instead of any type",
            ),
            (
                json!({ "x-kubernetes-preserve-unknown-fields": true }),
                json!({}),
                Verdict::Narrower,
                "`.spec.a`: unknown fields are dropped; they were kept",
            ),
            (
                json!({ "x-kubernetes-preserve-unknown-fields": true }),
                json!({ "additionalProperties": { "type": "string" } }),
                Verdict::Narrower,
                "`.spec.a.*`: only type string is accepted",
            ),
            (
                json!({ "items": { "nullable": true } }),
                json!({ "items": {} }),
                Verdict::Narrower,
                "`.spec.a[*]`: null is refused",
            ),
            (
                json!({}),
                json!({ "x-kubernetes-validations": [{ "rule": "self > 1" }] }),
                Verdict::Narrower,
                "`.spec.a`: new rule \"self > 1\"",
            ),
        ] {
            check(field(before), field(after), verdict, &[words]);
        }
    }

    #[test]
    fn an_integer_or_a_string_is_said_in_two_ways() {
        let both = json!([{ "type": "integer" }, { "type": "string" }]);
        check(
            json!({ "x-kubernetes-int-or-string": true }),
            json!({ "x-kubernetes-int-or-string": true, "anyOf": both }),
            Verdict::Same,
            &[],
        );
    }

    #[test]
    fn versions_and_names() {
        let before = crd(json!({}));
        let mut after = before.clone();
        after["spec"]["versions"][0]["name"] = "v2".into();
        after["spec"]["scope"] = "Cluster".into();
        let comparison = Comparison::of(&before, &after);
        assert_eq!(
            comparison.words(),
            [
                "version `v1` is missing",
                "scope \"Cluster\" instead of \"Namespaced\"",
                "version `v2` is new"
            ]
        );
    }
}
