//! Warns about schema changes after which existing objects may lose values, or no longer decode to
//! the Rust type.
//!
//! The API server only validates objects on write. If a field becomes required, it still returns
//! existing objects without that field, and the operator fails to decode them. Adding a default to
//! the schema helps, because defaults are also applied on read. Unknown fields, on the other hand,
//! are dropped.

use rbuilder_generator::{Diagnostic, FieldPath, FieldPlace, FileRange, Options, Sources, find_fields};
use serde_json::{Map, Value};

use super::definition::ChangedFile;

/// Warns about each field that becomes an enum, changes its type, or is required without a default,
/// and about removed fields and enum variants. Only versions that existed before are considered.
/// Warnings point to the field in the source.
///
/// `is_released` tells whether the CRD in a file may exist in a cluster.
pub(super) fn find_unreadable(
    changed: &[ChangedFile<'_>],
    sources: &dyn Sources,
    options: &Options,
    is_released: &dyn Fn(&str) -> bool,
) -> Vec<Diagnostic> {
    let mut narrowed: Vec<(&str, Narrowed)> = changed
        .iter()
        .flat_map(|file| {
            let found = compare_crds(file).into_iter();
            found.map(|narrowed| (file.path, narrowed))
        })
        .collect();
    // Fields are removed all the time while a kind is being developed, so only warn about these in
    // a released CRD.
    narrowed.retain(|(path, narrowed)| !matches!(narrowed.what, Narrowing::Fields(_)) || is_released(path));
    if narrowed.is_empty() {
        return Vec::new();
    }
    let fields: Vec<FieldPath> = narrowed
        .iter()
        .map(|(_, narrowed)| narrowed.field.clone())
        .collect();
    let places = find_fields(sources, options, &fields);
    let found = narrowed.iter().zip(places);
    found
        .map(|((path, narrowed), place)| {
            let in_manifest = || FieldPlace {
                range: FileRange::new(*path, 0..0),
                is_ours: false,
            };
            warning(place.unwrap_or_else(in_manifest), narrowed)
        })
        .collect()
}

#[derive(Debug, PartialEq)]
struct Narrowed {
    crd: String,
    field: FieldPath,
    what: Narrowing,
}

#[derive(Debug, PartialEq)]
enum Narrowing {
    Required,
    EnumValue(String),
    /// Any value of the type was valid; now only these are (as JSON).
    Enum(Vec<String>),
    /// Old and new type.
    Type(String, String),
    Fields(Vec<String>),
}

fn warning(place: FieldPlace, narrowed: &Narrowed) -> Diagnostic {
    let Narrowed { crd, field, what } = narrowed;
    let FieldPath { path, version, .. } = field;
    let (message, help) = match what {
        Narrowing::Required => (
            format!(
                "`{path}` becomes required in version `{version}` of `{crd}` and has no default: objects stored without \
                 it cannot be decoded"
            ),
            match path.as_str() {
                ".spec" => {
                    "give each stored object a `spec` before you apply the CRD: kube's type of the object always has one"
                }
                _ if place.is_ours => {
                    "make it an `Option`, or give it a default, with `#[kube(default = …)]` or `#[serde(default)]`"
                }
                _ => "make it an `Option`, or give it a default, with `#[serde(default)]`",
            },
        ),
        Narrowing::EnumValue(value) => (
            format!(
                "`{path}` loses the value `{value}` in version `{version}` of `{crd}`: objects stored with it cannot be \
                 decoded"
            ),
            "keep the variant until no stored object has it, or remove it in a new version with a conversion",
        ),
        Narrowing::Enum(values) => (
            format!(
                "`{path}` accepts only `{}` in version `{version}` of `{crd}`: objects stored with another value cannot be \
                 decoded",
                values.join("`, `")
            ),
            "make sure that no stored object has another value before you release the operator, or change the field in a new version \
             with a conversion",
        ),
        Narrowing::Type(old, new) => (
            format!(
                "`{path}` changes from {old} to {new} in version `{version}` of `{crd}`: objects stored with it cannot be \
                 decoded"
            ),
            "give the field another name, or change it in a new version with a conversion",
        ),
        Narrowing::Fields(names) => {
            let (fields, values) = match names.len() {
                1 => ("field", "its value"),
                _ => ("fields", "their values"),
            };
            let names = names.join("`, `");
            (
                format!(
                    "`{path}` loses the {fields} `{names}` in version `{version}` of `{crd}`: the API server drops {values} from \
                     stored objects"
                ),
                "keep a field until no stored object has it, or remove it in a new version with a conversion; to rename a \
                 field in Rust only, add `#[serde(rename = …)]` with its name in the CRD",
            )
        }
    };
    Diagnostic::warning(place.range, message).help(help)
}

fn compare_crds(file: &ChangedFile<'_>) -> Vec<Narrowed> {
    let mut found = Vec::new();
    for (before, after) in file.kept() {
        for version in &after.versions {
            let mut known = before.versions.iter();
            let Some(before) = known.find(|before| before.name == version.name) else {
                continue;
            };
            let mut narrowings = Vec::new();
            let (old, new) = (&before.schema, &version.schema);
            compare_schemas(
                &old.open_api_v3_schema,
                &new.open_api_v3_schema,
                "",
                &mut narrowings,
            );
            found.extend(narrowings.into_iter().map(|(path, what)| Narrowed {
                crd: after.name(),
                field: FieldPath {
                    group: after.group.clone(),
                    kind: after.names.kind.clone(),
                    version: version.name.clone(),
                    path,
                },
                what,
            }));
        }
    }
    found
}

fn compare_schemas(before: &Value, after: &Value, path: &str, found: &mut Vec<(String, Narrowing)>) {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else {
        return;
    };
    let field = if path.is_empty() { "." } else { path };
    if let Some((old, new)) = changed_type(before, after) {
        found.push((field.to_owned(), Narrowing::Type(old.to_owned(), new.to_owned())));
        return;
    }
    let removed = removed_fields(before, after);
    if !removed.is_empty() {
        found.push((field.to_owned(), Narrowing::Fields(removed)));
    }
    for name in new_names(before, after, "required") {
        let field = format!("{path}.{}", name.as_str().unwrap_or_default());
        let has_default = after
            .get("properties")
            .and_then(|properties| properties.get(name.as_str()?))
            .is_some_and(|property| property.get("default").is_some());
        if !has_default {
            found.push((field, Narrowing::Required));
        }
    }
    if let Some(values) = new_enum(before, after) {
        let values = values.iter().filter(|value| !value.is_null());
        let values = values.map(ToString::to_string).collect();
        found.push((field.to_owned(), Narrowing::Enum(values)));
    } else if after.contains_key("enum") {
        // If the schema doesn't allow `null`, the API server drops it on read.
        let removed = new_names(after, before, "enum").filter(|value| !value.is_null());
        found.extend(removed.map(|value| (field.to_owned(), Narrowing::EnumValue(value.to_string()))));
    }
    // No object contains a new field, so skip these.
    let properties = after.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        if let Some(before) = before
            .get("properties")
            .and_then(|properties| properties.get(name))
        {
            compare_schemas(before, schema, &format!("{path}.{name}"), found);
        }
    }
    for (inner, suffix) in [("items", "[*]"), ("additionalProperties", ".*")] {
        if let (Some(before), Some(after)) = (before.get(inner), after.get(inner)) {
            compare_schemas(before, after, &format!("{path}{suffix}"), found);
        }
    }
}

/// Variants of a new enum for a previously unrestricted value.
fn new_enum<'a>(before: &Map<String, Value>, after: &'a Map<String, Value>) -> Option<&'a Vec<Value>> {
    let is_free = before.contains_key("type") && !before.contains_key("enum");
    after.get("enum").filter(|_| is_free)?.as_array()
}

/// Both types, if values of the first aren't valid for the second.
fn changed_type<'a>(
    before: &'a Map<String, Value>,
    after: &'a Map<String, Value>,
) -> Option<(&'a str, &'a str)> {
    let types = (before.get("type")?.as_str()?, after.get("type")?.as_str()?);
    // Integers are numbers as well.
    (types.0 != types.1 && types != ("integer", "number")).then_some(types)
}

fn removed_fields(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<String> {
    let keeps = ["x-kubernetes-preserve-unknown-fields", "additionalProperties"];
    if keeps.iter().any(|key| after.contains_key(*key)) {
        return Vec::new();
    }
    let old = before.get("properties").and_then(Value::as_object);
    let new = after.get("properties").and_then(Value::as_object);
    let is_removed = |name: &&String| !new.is_some_and(|new| new.contains_key(*name));
    let names = old.into_iter().flat_map(Map::keys);
    names.filter(is_removed).cloned().collect()
}

fn new_names<'a>(
    before: &'a Map<String, Value>,
    after: &'a Map<String, Value>,
    list: &str,
) -> impl Iterator<Item = &'a Value> {
    let entries =
        |schema: &'a Map<String, Value>| schema.get(list).and_then(Value::as_array).into_iter().flatten();
    let known: Vec<&Value> = entries(before).collect();
    entries(after).filter(move |entry| !known.contains(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare_crds(before: &str, after: &str) -> Vec<Narrowed> {
        super::compare_crds(&ChangedFile::read("crd.yaml", before, after))
    }

    fn crd(schema: &str) -> String {
        format!(
            "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  versions:\n  - name: v1\n    \
             schema:\n      openAPIV3Schema: {schema}\n"
        )
    }

    #[track_caller]
    fn check(before: &str, after: &str, expected: &[&str]) {
        let found: Vec<String> = compare_crds(&crd(before), &crd(after))
            .iter()
            .map(|narrowed| match &narrowed.what {
                Narrowing::Required => narrowed.field.path.clone(),
                Narrowing::EnumValue(value) => format!("{} without {value}", narrowed.field.path),
                Narrowing::Enum(values) => format!("{} only {}", narrowed.field.path, values.join(", ")),
                Narrowing::Type(old, new) => format!("{}: {old} to {new}", narrowed.field.path),
                Narrowing::Fields(names) => format!("{} without {}", narrowed.field.path, names.join(", ")),
            })
            .collect();
        assert_eq!(found, expected, "{before} to {after}");
    }

    #[test]
    fn finds_required_fields_without_default() {
        let optional = "{properties: {spec: {properties: {a: {}, b: {}}}}}";
        let both = "{properties: {spec: {required: [a, b], properties: {a: {default: 1}, b: {}}}}}";
        check(optional, both, &[".spec.b"]);
        check(both, both, &[]);
        check(both, optional, &[]);
        check("{properties: {spec: {}}}", both, &[".spec.b"]);
    }

    #[test]
    fn ignores_fields_of_new_objects() {
        let after = "{properties: {spec: {properties: {new: {required: [a], properties: {a: {}}}}}}}";
        check("{properties: {spec: {properties: {}}}}", after, &[]);
    }

    #[test]
    fn descends_into_lists_and_maps() {
        let schema = |inner: &str| {
            format!("{{properties: {{list: {{items: {inner}}}, map: {{additionalProperties: {inner}}}}}}}")
        };
        check(
            &schema("{}"),
            &schema("{required: [a], properties: {a: {}}}"),
            &[".list[*].a", ".map.*.a"],
        );
    }

    #[test]
    fn finds_removed_enum_variants() {
        let schema = |values: &str| format!("{{properties: {{phase: {{enum: [{values}]}}}}}}");
        check(&schema("A, B"), &schema("A, C"), &[r#".phase without "B""#]);
        check(&schema("A, B, null"), &schema("A, B"), &[]);
        check("{properties: {phase: {}}}", &schema("A"), &[]);
        check(&schema("A"), "{properties: {phase: {}}}", &[]);
    }

    #[test]
    fn finds_string_turned_into_enum() {
        let schema = |phase: &str| format!("{{properties: {{phases: {{items: {{type: string{phase}}}}}}}}}");
        let limited = schema(", enum: [A, B, null]");
        check(&schema(""), &limited, &[r#".phases[*] only "A", "B""#]);
        check(
            &schema(", maxLength: 3"),
            &limited,
            &[r#".phases[*] only "A", "B""#],
        );
        check(&limited, &schema(""), &[]);
        check(&limited, &limited, &[]);
    }

    #[test]
    fn finds_changed_types() {
        let schema = |ty: &str| format!("{{properties: {{size: {{type: {ty}}}}}}}");
        check(
            &schema("string"),
            &schema("integer"),
            &[".size: string to integer"],
        );
        check(&schema("integer"), &schema("number"), &[]);
        check(
            &schema("number"),
            &schema("integer"),
            &[".size: number to integer"],
        );
        check(
            &schema("string"),
            "{properties: {size: {x-kubernetes-int-or-string: true}}}",
            &[],
        );
    }

    #[test]
    fn finds_removed_fields() {
        let before = "{properties: {spec: {properties: {a: {}, b: {}, c: {properties: {d: {}}}}}}}";
        check(
            before,
            "{properties: {spec: {properties: {b: {}}}}}",
            &[".spec without a, c"],
        );
        check(
            before,
            "{properties: {spec: {properties: {a: {}, b: {}, c: {properties: {}}}}}}",
            &[".spec.c without d"],
        );
        check(
            before,
            "{properties: {spec: {x-kubernetes-preserve-unknown-fields: true}}}",
            &[],
        );
        check(before, "{properties: {spec: {additionalProperties: {}}}}", &[]);
        check(before, "{}", &[". without spec"]);
    }

    #[test]
    fn ignores_other_versions() {
        let (before, after) = (crd("{}"), crd("{required: [a]}"));
        assert_eq!(compare_crds(&before.replace("v1\n", "v1alpha1\n"), &after), []);
        assert_eq!(compare_crds("kind: Role\n", &after), []);
        assert_eq!(compare_crds("a: [", &after), []);
    }
}
