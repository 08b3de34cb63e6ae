//! Cross products of tables. Each constraint, default and rule is on a field of each type, and each
//! format gets a valid and an invalid value.

use serde_json::json;

use super::fields::field;
use super::{Case, Sent, field_edits, json as parse, rows, word};

/// Constraints apply to values of one class, and types have values of one class.
#[derive(Clone, Copy, PartialEq)]
enum Subject {
    Number,
    Text,
    List,
    Map,
    Other,
}

use Subject::{List, Map, Number, Other, Text};

/// The columns are a name, the Rust type, and the class of its values.
const TYPES: &[(&str, &str, Subject)] = &[
    ("string", "String", Text),
    ("option", "Option<String>", Text),
    ("i32", "i32", Number),
    ("i64", "i64", Number),
    ("f64", "f64", Number),
    ("bool", "bool", Other),
    ("list", "Vec<String>", List),
    ("list-of-structs", "Vec<Inner>", List),
    ("map", "BTreeMap<String, i32>", Map),
    ("struct", "Inner", Map),
];

/// The columns are a name, the marker, the schema keys that it sets, and the class that it applies
/// to.
const CONSTRAINTS: &[(&str, &str, &str, Subject)] = &[
    ("minimum", "minimum = 2", r#"{"minimum": 2}"#, Number),
    ("maximum", "maximum = 9", r#"{"maximum": 9}"#, Number),
    (
        "exclusive-minimum",
        "minimum = 2, exclusive_minimum",
        r#"{"minimum": 2, "exclusiveMinimum": true}"#,
        Number,
    ),
    (
        "exclusive-maximum",
        "maximum = 9, exclusive_maximum",
        r#"{"maximum": 9, "exclusiveMaximum": true}"#,
        Number,
    ),
    ("multiple-of", "multiple_of = 3", r#"{"multipleOf": 3}"#, Number),
    ("min-length", "min_length = 1", r#"{"minLength": 1}"#, Text),
    ("max-length", "max_length = 9", r#"{"maxLength": 9}"#, Text),
    (
        "pattern",
        "pattern = \"^[a-z]+$\"",
        r#"{"pattern": "^[a-z]+$"}"#,
        Text,
    ),
    ("min-items", "min_items = 1", r#"{"minItems": 1}"#, List),
    ("max-items", "max_items = 9", r#"{"maxItems": 9}"#, List),
    (
        "min-properties",
        "min_properties = 1",
        r#"{"minProperties": 1}"#,
        Map,
    ),
    (
        "max-properties",
        "max_properties = 9",
        r#"{"maxProperties": 9}"#,
        Map,
    ),
];

/// JSON and Rust write these defaults in the same way. There is one for each class.
const VALUES: &[(&str, &str)] = &[
    ("text", "\"a\""),
    ("number", "1"),
    ("fraction", "1.5"),
    ("truth", "true"),
    ("list", "[\"a\"]"),
    ("map", "{ \"k\": 1 }"),
];

const RULES: &[(&str, &str)] = &[
    ("above-one", "self > 1"),
    ("equals-a", "self == 'a'"),
    ("size", "self.size() > 1"),
    ("name", "self.name == 'a'"),
    ("starts-with", "self.startsWith('a')"),
    ("all", "self.all(x, x == 'a')"),
    ("has-name", "has(self.name)"),
    ("first", "self[0] == 'a'"),
    ("itself", "self"),
    ("remainder", "self % 2 == 0"),
    ("in-itself", "'a' in self"),
    ("as-text", "string(self) == 'a'"),
];

pub(super) fn cases() -> Vec<Case> {
    [constraints(), defaults(), rules(), formats()].concat()
}

fn constraints() -> Vec<Case> {
    let mut cases = Vec::new();
    for (type_name, ty, of) in TYPES {
        for (name, marker, keys, subject) in CONSTRAINTS {
            let slug = format!("constraint/{name}-on-{type_name}");
            let sent = Sent::Edited(field_edits(&parse(keys)));
            let harm = (of != subject).then_some("the constraint has no effect on values of this type");
            let marker = format!("validation({marker})");
            cases.push(field(&slug, ty, &marker, sent).with_harm_if(harm));
        }
    }
    cases
}

fn defaults() -> Vec<Case> {
    let mut cases = Vec::new();
    for (type_name, ty, _) in TYPES {
        for (name, value) in VALUES {
            let slug = format!("default/{name}-for-{type_name}");
            let keys = json!({ "default": parse(value) });
            let sent = Sent::Edited(field_edits(&keys));
            cases.push(field(&slug, ty, &format!("default = {value}"), sent));
        }
    }
    cases
}

fn rules() -> Vec<Case> {
    let mut cases = Vec::new();
    for (type_name, ty, _) in TYPES {
        for (name, rule) in RULES {
            let slug = format!("cel/{name}-of-{type_name}");
            let keys = json!({ "x-kubernetes-validations": [{ "rule": rule }] });
            let sent = Sent::Edited(field_edits(&keys));
            cases.push(field(&slug, ty, &format!("validation = \"{rule}\""), sent));
        }
    }
    cases
}

/// Each format is on a string with a valid and an invalid default, and on a number.
fn formats() -> Vec<Case> {
    let mut cases = Vec::new();
    for row in rows(include_str!("../tables/format.tsv")) {
        let [format, good, bad] = row[..] else {
            panic!("{row:?}");
        };
        let name = word(format);
        let marker = format!("validation(format = \"{format}\")");
        let mut push = |slug: &str, ty: &str, value: Option<&str>, harm: Option<&'static str>| {
            let (markers, keys) = match value {
                Some(value) => (
                    format!("{marker}, default = {value:?}"),
                    json!({ "format": format, "default": value }),
                ),
                None => (marker.clone(), json!({ "format": format })),
            };
            let slug = format!("format/{name}-{slug}");
            let sent = Sent::Edited(field_edits(&keys));
            cases.push(field(&slug, ty, &markers, sent).with_harm_if(harm));
        };
        push("on-a-text", "String", None, None);
        push("default-right", "String", Some(good), None);
        if bad != "-" {
            push("default-wrong", "String", Some(bad), None);
        }
        push(
            "on-a-number",
            "i64",
            None,
            Some("the format has no effect on a number"),
        );
    }
    cases
}
