//! Compares the structure of a committed and a generated CRD, i.e. looks for objects that only one
//! of them accepts.
//!
//! Descriptions, titles, the order of lists, and metadata don't matter. Neither does `null` for an
//! optional field, which the API server drops if the schema doesn't allow it.

mod schema;

use std::collections::BTreeSet;

use rbuilder_kubernetes::crd::Crd;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Verdict {
    Same,
    /// The generated CRD accepts or preserves more.
    Richer,
    /// The generated CRD accepts or preserves less.
    Narrower,
    /// Both of the above, or another difference.
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

/// Direction of a difference. `More`: the generated CRD accepts more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    More,
    Less,
    Other,
}

#[derive(Debug, Default)]
pub(in crate::commands) struct Comparison {
    found: BTreeSet<(Direction, String)>,
    /// Keys without effect that only the committed CRD has.
    idle: BTreeSet<String>,
}

/// Prints a difference and its fields. Without a text, only the field is printed.
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

    /// Like [`words`](Self::words), but with identical differences of several fields on one line.
    /// For example, an outdated schema of a Kubernetes type differs wherever it is used.
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

    /// Describes keys of the committed CRD that aren't generated because they have no effect.
    pub(in crate::commands) fn idle_keys(&self) -> Vec<String> {
        self.idle.iter().cloned().collect()
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

    /// Every object has `apiVersion`, `kind` and `metadata`, whether or not the schema lists them.
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
}

fn list(value: &Value) -> Vec<&Value> {
    value
        .as_array()
        .map(|list| list.iter().collect())
        .unwrap_or_default()
}

fn versions(crd: &Value) -> Vec<(String, &Value)> {
    let versions = Crd::of(crd).versions();
    versions
        .map(|version| (version.name.to_owned(), version.value))
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
    fn ignores_descriptions_number_formats_and_nulls() {
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
    fn int_or_string_forms_are_equivalent() {
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
