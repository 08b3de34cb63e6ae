//! Compares fields across the versions of a kind.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_schema::Schema;

use super::fact::inline_value;
use super::facts::{collect_facts, type_name};
use super::fields::{allowed_values, fields_of, fields_of_object, rules_of};
use super::model::Version;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) path: String,
    /// Form of the field in each version, or `None` where it is missing.
    pub(super) forms: Vec<Option<String>>,
}

struct Form {
    type_name: String,
    phrases: Vec<String>,
}

pub(super) fn compare_versions(versions: &[Version]) -> Vec<Difference> {
    let forms: Vec<BTreeMap<String, Form>> = versions
        .iter()
        .map(|version| {
            let mut forms = BTreeMap::new();
            for field in fields_of_object(version.schema()) {
                collect_forms(field.name, field.schema, field.is_required, &mut forms);
            }
            forms
        })
        .collect();
    let paths: BTreeSet<&String> = forms.iter().flat_map(BTreeMap::keys).collect();
    let mut differences: Vec<Difference> = Vec::new();
    let mut absent = BTreeSet::new();
    for path in paths {
        let in_versions: Vec<Option<&Form>> = forms.iter().map(|forms| forms.get(path)).collect();
        // The set is sorted, so objects precede their fields.
        if ancestors(path).any(|above| absent.contains(above)) {
            continue;
        }
        if in_versions.iter().any(Option::is_none) {
            // One line for the object is enough; don't list its fields.
            absent.insert(path.as_str());
        }
        let shown = show_forms(&in_versions);
        if shown.windows(2).any(|pair| pair[0] != pair[1]) {
            differences.push(Difference {
                path: path.clone(),
                forms: shown,
            });
        }
    }
    differences
}

fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('.').map(|(at, _)| &path[..at])
}

/// Formats the type in each version, along with properties that differ between versions.
fn show_forms(forms: &[Option<&Form>]) -> Vec<Option<String>> {
    let is_common = |phrase: &String| forms.iter().flatten().all(|form| form.phrases.contains(phrase));
    let show = |form: &Form| {
        let own = form.phrases.iter().filter(|phrase| !is_common(phrase));
        let parts: Vec<&str> = [form.type_name.as_str()]
            .into_iter()
            .chain(own.map(String::as_str))
            .collect();
        parts.join(", ")
    };
    forms.iter().map(|form| form.map(show)).collect()
}

fn collect_forms(path: &str, schema: &Schema, is_required: bool, forms: &mut BTreeMap<String, Form>) {
    let mut phrases = Vec::new();
    if is_required {
        phrases.push("required".to_owned());
    }
    phrases.extend(schema.format.as_ref().map(ToString::to_string));
    phrases.extend(
        schema
            .default
            .as_ref()
            .map(|default| format!("default {}", inline_value(default))),
    );
    for (_, values) in allowed_values(schema) {
        phrases.extend(values.iter().map(inline_value));
    }
    phrases.extend(
        collect_facts(schema)
            .iter()
            .map(|fact| format!("{} {}", fact.label, fact.code).trim().to_owned()),
    );
    phrases.extend(
        rules_of(schema)
            .iter()
            .map(|(_, rule)| format!("rule {}", rule.rule)),
    );
    forms.insert(
        path.to_owned(),
        Form {
            type_name: type_name(schema),
            phrases,
        },
    );
    for field in fields_of(schema) {
        collect_forms(
            &format!("{path}.{}", field.name),
            field.schema,
            field.is_required,
            forms,
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn version(name: &str, spec: Value) -> Version {
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        serde_json::from_value(json!({ "name": name, "schema": { "openAPIV3Schema": schema } }))
            .expect("a version")
    }

    #[test]
    fn lists_fields_that_differ() {
        let integer = json!({ "type": "integer", "minimum": 1 });
        let old = json!({ "type": "object", "required": ["size"], "properties": {
            "size": integer, "same": integer, "mode": { "type": "string", "enum": ["a", "b"] },
        } });
        let new = json!({ "type": "object", "properties": {
            "size": { "type": "integer", "minimum": 1, "default": 3 }, "same": integer,
            "mode": { "type": "string", "enum": ["a", "b", "c"] },
            "disk": { "type": "object", "properties": { "size": integer } },
        } });
        let versions = [version("v2", new), version("v1", old)];
        let found: Vec<String> = compare_versions(&versions)
            .iter()
            .map(|difference| format!("{} {:?}", difference.path, difference.forms))
            .collect();
        assert_eq!(
            found,
            [
                r#"spec.disk [Some("object"), None]"#,
                r#"spec.mode [Some("string, c"), Some("string")]"#,
                r#"spec.size [Some("integer, default 3"), Some("integer, required")]"#,
            ]
        );
        assert_eq!(compare_versions(&versions[..1]), []);
    }
}
