//! Changes of a schema after which existing objects may lose values, or no longer decode to the
//! type that they were written with.
//!
//! This only compares the two schemas, so it is much cheaper than [`compare`](crate::compare),
//! which searches for objects.

use serde_json::{Map, Value};

/// A change after which objects of the old schema may lose values, or no longer decode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Narrowing {
    /// The field has become required and has no default.
    Required,
    /// This value (as JSON) was removed from the enum.
    EnumValue(String),
    /// The field has become an enum of these values (as JSON).
    Enum(Vec<String>),
    /// The type has changed, from the first to the second.
    Type(String, String),
    /// These fields were removed.
    Fields(Vec<String>),
}

/// Compares two schemas of the same version. Each narrowing comes with the path of the field, e.g.
/// `.spec.ports[*].name`, or `.` for the object itself.
pub fn find_narrowings(before: &Value, after: &Value) -> Vec<(String, Narrowing)> {
    let mut found = Vec::new();
    compare_schemas(before, after, "", &mut found);
    found
}

fn compare_schemas(before: &Value, after: &Value, path: &str, found: &mut Vec<(String, Narrowing)>) {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else {
        return;
    };
    // Most of a schema stays the same.
    if before == after {
        return;
    }
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

    #[track_caller]
    fn check(before: &str, after: &str, expected: &[&str]) {
        let parse = |text: &str| rbuilder_yaml::parse_value(text).expect("YAML");
        let found = find_narrowings(&parse(before), &parse(after)).into_iter();
        let found: Vec<String> = found
            .map(|(path, narrowing)| match narrowing {
                Narrowing::Required => path,
                Narrowing::EnumValue(value) => format!("{path} without {value}"),
                Narrowing::Enum(values) => format!("{path} only {}", values.join(", ")),
                Narrowing::Type(old, new) => format!("{path}: {old} to {new}"),
                Narrowing::Fields(names) => format!("{path} without {}", names.join(", ")),
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
}
