//! Compares a committed CRD with the generated one, forwards and backwards: what breaks on the way
//! from the committed CRD is lost, and what breaks on the way back is gained.
//!
//! Descriptions and metadata don't matter. Neither does `null` for an optional field: the API server
//! drops it if the schema doesn't allow it, and an `Option` reads both in the same way.

use std::collections::BTreeMap;

use rbuilder_compatibility::{Budget, Change, Level, compare_within};
use rbuilder_kubernetes::crd::Crd;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::commands) enum Verdict {
    Same,
    /// The generated CRD accepts or preserves less.
    Narrower,
    /// Both less and more, or another difference.
    Different,
    /// The generated CRD accepts or preserves more.
    Richer,
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

/// Rule for an optional field whose `null` is dropped, and that for the change back.
const NULL_DROPPED: &str = "null-dropped";
const NULL_KEPT: &str = "nullable-added";

/// Rules for changes without any effect.
const UNMENTIONED: [&str; 3] = ["description-changed", "rule-message-changed", "format-ignored"];

const IGNORED: &str = "key-ignored";

#[derive(Debug, Default)]
pub(in crate::commands) struct Comparison {
    /// Each difference, with the field it's at. Sorted by verdict.
    differences: Vec<(Verdict, String, String)>,
    /// Keys without effect that only one of the CRDs has.
    idle: Vec<String>,
}

/// The changes of a field, in both directions.
#[derive(Default)]
struct Changes {
    forwards: Vec<Change>,
    backwards: Vec<Change>,
}

impl Changes {
    /// Forgets that `null` is kept in one direction and dropped in the other.
    fn ignore_dropped_null(&mut self) {
        let both = [&mut self.forwards, &mut self.backwards];
        if both
            .iter()
            .any(|changes| changes.iter().any(|change| change.rule.name == NULL_DROPPED))
        {
            for changes in both {
                changes.retain(|change| ![NULL_DROPPED, NULL_KEPT].contains(&change.rule.name));
            }
        }
    }

    fn verdict(&self) -> Verdict {
        let level = |changes: &[Change]| changes.iter().map(|change| change.level).max();
        let level = |changes| level(changes).unwrap_or(Level::Compatible);
        match (level(&self.forwards), level(&self.backwards)) {
            (Level::Compatible, Level::Compatible) => Verdict::Same,
            (lost, gained) if lost > gained => Verdict::Narrower,
            (lost, gained) if lost < gained => Verdict::Richer,
            _ => Verdict::Different,
        }
    }

    fn messages(&self) -> Vec<String> {
        if self.forwards.is_empty() {
            let backwards = self.backwards.iter();
            return backwards
                .map(|change| format!("in the committed CRD: {}", change.message))
                .collect();
        }
        let message = |change: &Change| match change.rule.name {
            "conversion-removed" => format!("{}: write it with `#[crd(conversion(…))]`", change.message),
            _ => change.message.clone(),
        };
        self.forwards.iter().map(message).collect()
    }
}

/// Prints a difference and its fields.
fn print_group((message, fields): (&str, Vec<&str>)) -> String {
    match fields.as_slice() {
        [only] => format!("`{only}`: {message}"),
        [one, other] => format!("`{one}`, `{other}`: {message}"),
        [first, rest @ ..] => format!("`{first}` and {} more fields: {message}", rest.len()),
        [] => message.to_owned(),
    }
}

impl Comparison {
    /// Compares two CRDs. The budget limits the search for objects that are affected.
    pub(in crate::commands) fn of(committed: &Value, generated: &Value, budget: &Budget) -> Comparison {
        let mut comparison = Comparison::default();
        let view = Crd::of(committed);
        let (before, after) = (view.plural(), Crd::of(generated).plural());
        if before != after {
            comparison.add(
                Verdict::Different,
                "spec.names.plural",
                format!("`{after}` instead of `{before}`"),
            );
        }
        if !view.has_versions() {
            comparison.add(
                Verdict::Different,
                "spec.versions",
                "the committed CRD has no list".to_owned(),
            );
            return comparison;
        }
        let old = as_manifest(committed, generated);
        let new = as_manifest(generated, generated);
        let forwards = compare_within(std::slice::from_ref(&old), std::slice::from_ref(&new), budget);
        let backwards = compare_within(&[new], &[old], budget);
        match (forwards, backwards) {
            (Ok(forwards), Ok(backwards)) => {
                comparison.add_changes(forwards, backwards, view.versions().count() > 1);
            }
            (Err(reason), _) | (_, Err(reason)) => {
                comparison.add(
                    Verdict::Different,
                    "spec",
                    format!("cannot be compared: {reason}"),
                );
            }
        }
        comparison.differences.sort();
        comparison
    }

    fn add(&mut self, verdict: Verdict, field: &str, message: String) {
        self.differences.push((verdict, field.to_owned(), message));
    }

    fn add_changes(&mut self, forwards: Vec<Change>, backwards: Vec<Change>, is_versioned: bool) {
        let ignored = forwards.iter().filter(|change| change.rule.name == IGNORED);
        let ignored =
            ignored.map(|change| format!("`{}`: {}, and is left out", change.field, change.message));
        self.idle.extend(ignored);
        let mut fields: BTreeMap<String, Changes> = BTreeMap::new();
        let matters = |change: &Change| {
            let rule = change.rule.name;
            rule != IGNORED && !UNMENTIONED.contains(&rule)
        };
        let field = |change: &Change| match (&change.version, change.field.as_str()) {
            (Some(version), field) if is_versioned => format!("{version} {field}"),
            (_, "") => ".".to_owned(),
            (_, field) => field.to_owned(),
        };
        for change in forwards.into_iter().filter(matters) {
            fields.entry(field(&change)).or_default().forwards.push(change);
        }
        for change in backwards.into_iter().filter(matters) {
            fields.entry(field(&change)).or_default().backwards.push(change);
        }
        for (field, mut changes) in fields {
            changes.ignore_dropped_null();
            let verdict = changes.verdict();
            if verdict != Verdict::Same {
                changes
                    .messages()
                    .into_iter()
                    .for_each(|message| self.add(verdict, &field, message));
            }
        }
    }

    pub(in crate::commands) fn verdict(&self) -> Verdict {
        let mut verdicts: Vec<Verdict> = self.differences.iter().map(|(verdict, ..)| *verdict).collect();
        verdicts.dedup();
        match verdicts.as_slice() {
            [] => Verdict::Same,
            [only] => *only,
            _ => Verdict::Different,
        }
    }

    pub(in crate::commands) fn words(&self) -> Vec<String> {
        let differences = self.differences.iter();
        differences
            .map(|(_, field, message)| print_group((message, vec![field])))
            .collect()
    }

    /// Like [`words`](Self::words), but with identical differences of several fields on one line.
    /// For example, an outdated schema of a Kubernetes type differs wherever it is used.
    pub(in crate::commands) fn grouped_words(&self) -> Vec<String> {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for (_, field, message) in &self.differences {
            match groups.iter_mut().find(|(known, _)| known == message) {
                Some((_, fields)) => fields.push(field),
                None => groups.push((message, vec![field])),
            }
        }
        groups.into_iter().map(print_group).collect()
    }

    /// Describes keys that only the committed CRD has, without effect.
    pub(in crate::commands) fn idle_keys(&self) -> Vec<String> {
        self.idle.clone()
    }
}

/// Gives a CRD the name of the generated one, so that the two are versions of one object.
fn as_manifest(crd: &Value, generated: &Value) -> Value {
    let mut manifest = crd.clone();
    manifest["kind"] = generated["kind"].clone();
    manifest["metadata"] = serde_json::json!({ "name": generated["metadata"]["name"] });
    manifest
}

#[cfg(test)]
mod tests {
    use rbuilder_compatibility::compare;
    use serde_json::json;

    use super::*;

    fn crd(field: &Value) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "cups.example.com" },
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": { "kind": "Cup", "plural": "cups", "shortNames": ["cu"] },
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "subresources": { "status": {}, "scale": { "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n" } },
                    "selectableFields": [{ "jsonPath": ".spec.b" }],
                    "additionalPrinterColumns": [{ "name": "A", "type": "integer", "jsonPath": ".spec.a" }],
                    "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                        "spec": { "type": "object", "properties": { "a": field, "b": { "type": "string" }, "n": { "type": "integer" } } },
                    } } },
                }],
            },
        })
    }

    fn compared(committed: &Value, generated: &Value) -> Comparison {
        Comparison::of(committed, generated, &Budget::default())
    }

    /// Checks an edit in both directions, also against the levels of `rbuilder diff`.
    #[track_caller]
    fn check(before: &Value, after: &Value, verdict: Verdict, words: &[&str]) {
        let comparison = compared(before, after);
        assert_eq!(
            (comparison.verdict(), comparison.words()),
            (verdict, words.iter().map(ToString::to_string).collect())
        );
        let opposite = match verdict {
            Verdict::Narrower => Verdict::Richer,
            Verdict::Richer => Verdict::Narrower,
            other => other,
        };
        assert_eq!(
            compared(after, before).verdict(),
            opposite,
            "backwards from {words:?}"
        );
        let breaks = |old: &Value, new: &Value| {
            let changes = compare(std::slice::from_ref(old), std::slice::from_ref(new)).expect("CRDs");
            let mut breaking = changes.iter().filter(|change| change.level == Level::Breaking);
            breaking.any(|change| change.rule.name != "null-dropped")
        };
        let (is_lost, is_gained) = (breaks(before, after), breaks(after, before));
        let fits = match verdict {
            Verdict::Same => !is_lost && !is_gained,
            Verdict::Narrower => !is_gained,
            Verdict::Richer => !is_lost,
            Verdict::Different => is_lost == is_gained,
        };
        assert!(
            fits,
            "{words:?}: breaks forwards: {is_lost}, backwards: {is_gained}"
        );
    }

    const SAME: Verdict = Verdict::Same;
    const NARROWER: Verdict = Verdict::Narrower;
    const RICHER: Verdict = Verdict::Richer;
    const DIFFERENT: Verdict = Verdict::Different;

    #[test]
    #[rustfmt::skip]
    fn edits_of_a_field() {
        let integer = || json!({ "type": "integer" });
        let string = || json!({ "type": "string" });
        let with = |mut schema: Value, key: &str, value: Value| { schema[key] = value; schema };
        let structure = |fields: Value| json!({ "type": "object", "properties": fields });
        let open = || with(structure(json!({})), "x-kubernetes-preserve-unknown-fields", json!(true));
        let list = |items: Value| json!({ "type": "array", "items": items });
        for (before, after, verdict, words) in [
            (with(integer(), "description", json!("Old.")), with(integer(), "description", json!("New.")), SAME, &[][..]),
            (with(integer(), "nullable", json!(true)), integer(), SAME, &[]),
            (with(integer(), "minimum", json!(0.0)), with(integer(), "minimum", json!(0)), SAME, &[]),
            (with(integer(), "format", json!("uint16")), integer(), SAME, &[]),
            (with(integer(), "minLength", json!(3)), integer(), SAME, &[]),
            (with(with(integer(), "minimum", json!(0)), "maximum", json!(9)), with(with(with(integer(), "minimum", json!(0)), "maximum", json!(9)), "format", json!("int32")), SAME, &[]),
            (json!({ "x-kubernetes-int-or-string": true }), json!({ "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] }), SAME, &[]),
            (with(integer(), "format", json!("int64")), with(integer(), "format", json!("int32")), NARROWER, &["`spec.a`: format int32 instead of int64"]),
            (integer(), with(integer(), "format", json!("int32")), NARROWER, &["`spec.a`: format int32"]),
            (with(with(integer(), "format", json!("int64")), "minimum", json!(0)), with(integer(), "format", json!("int32")), DIFFERENT, &["`spec.a`: format int32 instead of int64", "`spec.a`: no minimum instead of 0"]),
            (with(integer(), "maximum", json!(9)), with(integer(), "maximum", json!(5)), NARROWER, &["`spec.a`: maximum 5 instead of 9"]),
            (with(string(), "minLength", json!(2)), string(), RICHER, &["`spec.a`: no minLength instead of 2"]),
            (with(string(), "enum", json!(["A", "B"])), with(string(), "enum", json!(["A"])), NARROWER, &["`spec.a`: enum without \"B\""]),
            (string(), with(string(), "pattern", json!("^a")), NARROWER, &["`spec.a`: pattern `^a`"]),
            (string(), with(string(), "format", json!("date-time")), NARROWER, &["`spec.a`: format date-time"]),
            (with(integer(), "default", json!(1)), integer(), DIFFERENT, &["`spec.a`: no default instead of 1"]),
            (integer(), string(), DIFFERENT, &["`spec.a`: type string instead of type integer"]),
            (integer(), json!({ "type": "number" }), RICHER, &["`spec.a`: type number instead of type integer"]),
            (open(), structure(json!({})), NARROWER, &["`spec.a`: unknown fields are pruned"]),
            (list(with(integer(), "nullable", json!(true))), list(integer()), NARROWER, &["`spec.a[*]`: `null` is not allowed"]),
            (integer(), with(integer(), "x-kubernetes-validations", json!([{ "rule": "self > 1" }])), NARROWER, &["`spec.a`: rule `self > 1`"]),
            (structure(json!({ "x": string() })), structure(json!({})), NARROWER, &["`spec.a.x`: removed"]),
            (structure(json!({ "x": string() })), with(structure(json!({ "x": string() })), "required", json!(["x"])), NARROWER, &["`spec.a.x`: required"]),
            (list(string()), with(list(string()), "x-kubernetes-list-type", json!("set")), NARROWER, &["`spec.a`: list type set instead of atomic"]),
        ] {
            check(&crd(&before), &crd(&after), verdict, words);
        }
    }

    #[test]
    #[rustfmt::skip]
    fn edits_of_the_rest() {
        let plain = || crd(&json!({ "type": "integer" }));
        let first = "/spec/versions/0";
        for (at, value, verdict, words) in [
            ("/spec/scope", json!("Cluster"), DIFFERENT, &["`spec.scope`: `Cluster` instead of `Namespaced`"][..]),
            ("/spec/names/kind", json!("Mug"), DIFFERENT, &["`spec.names.kind`: `Mug` instead of `Cup`", "`spec.names.listKind`: `MugList` instead of `CupList`", "`spec.names.singular`: no singular `cup`", "`spec.names.singular`: singular `mug`"]),
            ("/spec/names/plural", json!("cupses"), DIFFERENT, &["`spec.names.plural`: `cupses` instead of `cups`"]),
            ("/spec/names/shortNames", json!([]), NARROWER, &["`spec.names.shortNames`: no short name `cu`"]),
            ("/spec/names/singular", json!("cup"), SAME, &[]),
            ("/metadata/labels", json!({ "a": "b" }), SAME, &[]),
            ("/spec/versions/0/served", json!(false), NARROWER, &["`spec.versions[v1]`: the version is not served"]),
            ("/spec/versions/0/selectableFields", json!([]), NARROWER, &["`selectableFields`: no `.spec.b`"]),
            ("/spec/versions/0/subresources/scale", Value::Null, NARROWER, &["`subresources.scale`: removed"]),
            ("/spec/versions/0/additionalPrinterColumns", json!([]), NARROWER, &["`additionalPrinterColumns[A]`: removed"]),
            ("/spec/versions/0/additionalPrinterColumns/0/jsonPath", json!(".spec.b"), DIFFERENT, &["`additionalPrinterColumns[A]`: jsonPath `.spec.b` instead of `.spec.a`"]),
        ] {
            let mut edited = plain();
            let (parent, key) = at.rsplit_once('/').expect("a pointer");
            edited.pointer_mut(parent).expect(first)[key] = value;
            check(&plain(), &edited, verdict, words);
        }
        let mut renamed = plain();
        renamed["spec"]["versions"][0]["name"] = "v2".into();
        let comparison = compared(&plain(), &renamed);
        assert_eq!(comparison.verdict(), DIFFERENT);
        assert!(comparison.words().contains(&"`spec.versions[v2]`: new version".to_owned()), "{:?}", comparison.words());
        let mut converted = plain();
        converted["spec"]["conversion"] = json!({ "strategy": "Webhook" });
        let hint = "`spec.conversion`: no conversion instead of Webhook: write it with `#[crd(conversion(…))]`";
        check(&converted, &plain(), NARROWER, &[hint]);
    }

    #[test]
    fn a_difference_of_several_fields_is_one_line() {
        let fields = |schema: Value| {
            let properties = ["a", "b", "c"].map(|name| (name.to_owned(), schema.clone()));
            crd(&json!({ "type": "object", "properties": serde_json::Map::from_iter(properties) }))
        };
        let comparison = compared(
            &fields(json!({ "type": "string" })),
            &fields(json!({ "type": "string", "maxLength": 3 })),
        );
        assert_eq!(
            comparison.grouped_words(),
            ["`spec.a.a` and 2 more fields: maxLength 3"]
        );
        assert_eq!(comparison.words().len(), 3);
    }

    #[test]
    fn unreadable_crds_are_different() {
        let generated = crd(&json!({ "type": "integer" }));
        let mut committed = generated.clone();
        committed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] =
            json!(["{{ .Values.schema }}"]);
        let comparison = compared(&committed, &generated);
        assert_eq!(comparison.verdict(), DIFFERENT);
        assert!(
            comparison.words()[0].starts_with("`spec`: cannot be compared: "),
            "{:?}",
            comparison.words()
        );
    }
}
