//! Checks the API server's rules for structural schemas and the topology of lists, to find mistakes
//! before the server does.

use rbuilder_diagnostic::Diagnostic;
use rbuilder_diagnostic::suggest::describe_candidates;

use crate::build::is_scalar;
use crate::root::check_stanza;
use crate::rules::{REPEATED_RULE_HELP, describe_repeated_rule, find_repeated_rule};
use crate::{KEYS, Key, ListType, Role, Schema, SchemaType};

/// Returns an error for each violated rule, in the order of the fields. The error's place is the
/// path of a value (e.g. `.spec.items[].name`), empty for the schema itself. Parts whose errors
/// [have been reported](Schema::is_reported) are skipped.
pub fn check_structural(schema: &Schema) -> Vec<Diagnostic<String>> {
    let mut diagnostics = Vec::new();
    visit(schema, &mut String::new(), &mut diagnostics);
    diagnostics
}

/// Restores `path` before returning.
fn visit(schema: &Schema, path: &mut String, diagnostics: &mut Vec<Diagnostic<String>>) {
    if schema.is_reported.0 {
        return;
    }
    let mut error = |message: String, help: Option<String>| {
        diagnostics.push(Diagnostic::error(path.to_owned(), message).maybe_help(help));
    };
    if schema.schema_type.is_none() && !schema.int_or_string && !schema.preserve_unknown_fields {
        let help =
            "set one with `validation(type = \"…\")`, or accept any content with `preserve_unknown_fields`";
        error("the value has no type".into(), Some(help.into()));
    }
    if schema.schema_type == Some(SchemaType::Array) && schema.items.is_none() {
        error("a list needs a schema for its items".into(), None);
    }
    if schema.additional_properties.is_some() && !schema.properties.is_empty() {
        error(
            "an object cannot have both `properties` and `additionalProperties`".into(),
            None,
        );
    }
    if schema.embedded_resource && schema.properties.is_empty() && !schema.preserve_unknown_fields {
        error(
            "an embedded resource needs `properties` or `preserve_unknown_fields`".into(),
            None,
        );
    }
    if schema.embedded_resource && schema.schema_type != Some(SchemaType::Object) {
        error("an embedded resource must be an object".into(), None);
    }
    if let Some(list_type) = schema.list_type {
        for mistake in check_list_map(list_type, schema) {
            error(mistake.message, mistake.help);
        }
    }
    if schema.items.as_deref().is_some_and(|items| items.nullable)
        && matches!(schema.list_type, Some(ListType::Map | ListType::Set))
    {
        error(
            "items of a list of type `set` or `map` must not be `null`".into(),
            None,
        );
    }
    if let Some(rule) = find_repeated_rule(&schema.validations) {
        error(describe_repeated_rule(rule), Some(REPEATED_RULE_HELP.into()));
    }
    if schema.embedded_resource {
        diagnostics.extend(check_stanza(schema, path));
    }
    if !schema.all_of.is_empty()
        || !schema.any_of.is_empty()
        || !schema.one_of.is_empty()
        || schema.not.is_some()
    {
        check_parts(schema, schema, path, diagnostics);
    }
    let length = path.len();
    let mut inner = |parts: [&str; 2], schema: &Schema| {
        path.extend(parts);
        visit(schema, path, diagnostics);
        path.truncate(length);
    };
    for (name, property) in &schema.properties {
        inner([".", name], property);
    }
    if let Some(items) = &schema.items {
        inner(["[]", ""], items);
    }
    if let Some(values) = &schema.additional_properties {
        inner([".*", ""], values);
    }
}

/// Checks the alternatives of a schema. Places are paths below that schema.
pub(crate) fn check_alternatives(schema: &Schema) -> Vec<Diagnostic<String>> {
    let mut diagnostics = Vec::new();
    check_parts(schema, schema, &mut String::new(), &mut diagnostics);
    diagnostics
}

/// Checks the alternatives in `holder`. `schema` describes the constrained value, and differs from
/// `holder` if alternatives are nested.
fn check_parts(
    holder: &Schema,
    schema: &Schema,
    path: &mut String,
    diagnostics: &mut Vec<Diagnostic<String>>,
) {
    let of_type = |schema_type| Schema {
        schema_type: Some(schema_type),
        ..Schema::default()
    };
    let either = [of_type(SchemaType::Integer), of_type(SchemaType::String)];
    let lists = [
        ("allOf", &holder.all_of),
        ("anyOf", &holder.any_of),
        ("oneOf", &holder.one_of),
    ];
    let length = path.len();
    for (key, parts) in lists {
        // Only the alternatives of an integer-or-string may have types.
        if key == "anyOf" && **parts == either {
            continue;
        }
        for (position, part) in parts.iter().enumerate() {
            *path += &format!(".{key}[{position}]");
            check_part(part, schema, path, diagnostics);
            path.truncate(length);
        }
    }
    if let Some(not) = &holder.not {
        *path += ".not";
        check_part(not, schema, path, diagnostics);
        path.truncate(length);
    }
}

/// Returns whether an alternative must not have a key. The API server only considers its own form
/// of a schema, which has neither examples nor links.
fn is_refused(key: &Key) -> bool {
    key.role != Role::Constraint && !matches!(key.name, "example" | "externalDocs")
}

/// Checks an alternative. It may only constrain values, so it must neither have descriptive keys
/// nor mention fields that `schema` doesn't define.
fn check_part(part: &Schema, schema: &Schema, path: &mut String, diagnostics: &mut Vec<Diagnostic<String>>) {
    let mut error = |path: &str, message: String, help: &str| {
        diagnostics.push(Diagnostic::error(path.to_owned(), message).help(help));
    };
    for key in KEYS.iter().filter(|key| is_refused(key) && key.is_set(part)) {
        let help = "move it to the schema around the alternatives";
        let key = key.name;
        error(path, format!("an alternative cannot have `{key}`"), help);
    }
    for name in part.properties.keys() {
        if &**name == "metadata" {
            error(
                path,
                "an alternative cannot constrain `metadata`".into(),
                "remove it",
            );
        } else if !schema.properties.contains_key(name) {
            let help = "add it to `properties` around the alternatives";
            error(
                path,
                format!("the alternative names the unknown field `{name}`"),
                help,
            );
        }
    }
    if part.items.is_some() && schema.items.is_none() {
        error(
            path,
            "the alternative constrains items of a value that has none".into(),
            "add `items` to the schema around the alternatives",
        );
    }
    check_parts(part, schema, path, diagnostics);
    let length = path.len();
    for (name, inner) in &part.properties {
        if let Some(outer) = schema.properties.get(name) {
            path.extend([".", name]);
            check_part(inner, outer, path, diagnostics);
            path.truncate(length);
        }
    }
    if let (Some(inner), Some(outer)) = (&part.items, &schema.items) {
        *path += "[]";
        check_part(inner, outer, path, diagnostics);
        path.truncate(length);
    }
}

pub(crate) fn check_list_map(list_type: ListType, schema: &Schema) -> Vec<Diagnostic<&'static str>> {
    let Some(items) = schema.items.as_deref() else {
        return Vec::new();
    };
    match list_type {
        ListType::Atomic => Vec::new(),
        ListType::Set => check_set(items),
        ListType::Map if items.schema_type != Some(SchemaType::Object) => {
            let help = "write `list_type = \"set\"` or `\"atomic\"`";
            vec![Diagnostic::error("list_type", "items of a list of type `map` must be objects").help(help)]
        }
        ListType::Map => schema
            .list_map_keys
            .iter()
            .filter_map(|key| check_key(key, items))
            .collect(),
    }
}

fn check_set(items: &Schema) -> Vec<Diagnostic<&'static str>> {
    let atomic = match items.schema_type {
        Some(SchemaType::Object) => items.map_type == Some(crate::MapType::Atomic),
        Some(SchemaType::Array) => items
            .list_type
            .is_none_or(|list_type| list_type == ListType::Atomic),
        // Items of any type can't be ruled out as scalars.
        None => true,
        _ => is_scalar(items),
    };
    if atomic {
        return warn_of_composite_items(items).into_iter().collect();
    }
    let message = "items of a list of type `set` must be scalars, not objects";
    let help = "write `list_type = \"map\"` with `list_map_keys`, or `\"atomic\"`";
    vec![Diagnostic::error("list_type", message).help(help)]
}

/// Warns about a set of atomic objects or lists, as kube-apiserver does. The server does check that
/// the items are unique, but server-side apply and equality in CEL treat such items differently.
fn warn_of_composite_items(items: &Schema) -> Option<Diagnostic<&'static str>> {
    let kind = match items.schema_type {
        Some(SchemaType::Object) => "objects",
        Some(SchemaType::Array) => "lists",
        _ => return None,
    };
    let message =
        format!("server-side apply and CEL rules do not support a list of type `set` with {kind} as items");
    let help = "write `list_type = \"atomic\"`";
    Some(Diagnostic::warning("list_type", message).help(help))
}

fn check_key(key: &str, items: &Schema) -> Option<Diagnostic<&'static str>> {
    let error = |message: &str| Diagnostic::error("list_map_keys", format!("list map key `{key}` {message}"));
    let Some(property) = items.properties.get(key) else {
        let keys = items.properties.iter();
        let keys: Vec<&str> = keys
            .filter(|(_, property)| is_scalar(property) && !property.nullable)
            .map(|(name, _)| name.as_ref())
            .collect();
        let help = match keys.is_empty() {
            true => "give the items a field with a scalar, or use another list type".to_owned(),
            false => describe_candidates(key, keys.iter().copied()),
        };
        return Some(error("is not a field of the items").help(help));
    };
    if !is_scalar(property) && property.schema_type.is_some() {
        return Some(error("must be a scalar"));
    }
    if property.nullable {
        return Some(error("must not be nullable"));
    }
    if !items.required.contains(key) && property.default.is_none() {
        let help = "make the field required, or add a default";
        return Some(error("must be required or have a default").help(help));
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(schema: Value, expected: &[&str]) {
        let diagnostics = check_structural(&serde_json::from_value(schema.clone()).expect("a schema"));
        let texts: Vec<_> = diagnostics
            .iter()
            .map(|diagnostic| format!("{}: {}", diagnostic.place, diagnostic.message))
            .collect();
        assert_eq!(texts, expected, "{schema}");
    }

    fn keyed(key: Value, required: bool) -> Value {
        let required = if required { json!(["k"]) } else { json!([]) };
        let items = json!({"type": "object", "properties": {"k": key}, "required": required});
        json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})
    }

    #[test]
    fn every_value_needs_a_type() {
        check(json!({}), &[": the value has no type"]);
        check(
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}}}),
            &[".a[]: the value has no type"],
        );
        check(
            json!({"type": "object", "additionalProperties": {"type": "array"}}),
            &[".*: a list needs a schema for its items"],
        );
        check(json!({"x-kubernetes-preserve-unknown-fields": true}), &[]);
        check(json!({"x-kubernetes-int-or-string": true}), &[]);
        check(
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            &[": an object cannot have both `properties` and `additionalProperties`"],
        );
        check(
            json!({"type": "object", "x-kubernetes-embedded-resource": true}),
            &[": an embedded resource needs `properties` or `preserve_unknown_fields`"],
        );
    }

    #[test]
    fn checks_list_topology() {
        check(keyed(json!({"type": "string"}), true), &[]);
        check(keyed(json!({"type": "string", "default": "x"}), false), &[]);
        check(
            keyed(json!({"type": "string"}), false),
            &[": list map key `k` must be required or have a default"],
        );
        check(
            keyed(json!({"type": "string", "nullable": true}), true),
            &[": list map key `k` must not be nullable"],
        );
        check(
            keyed(json!({"type": "object"}), true),
            &[": list map key `k` must be a scalar"],
        );
        let mut other = keyed(json!({"type": "string"}), true);
        other["x-kubernetes-list-map-keys"] = json!(["j"]);
        check(other, &[": list map key `j` is not a field of the items"]);
        let set = |items: Value| json!({"type": "array", "items": items, "x-kubernetes-list-type": "set"});
        check(set(json!({"type": "string"})), &[]);
        check(
            set(json!({"type": "object"})),
            &[": items of a list of type `set` must be scalars, not objects"],
        );
        check(
            set(json!({"type": "object", "x-kubernetes-map-type": "atomic"})),
            &[": server-side apply and CEL rules do not support a list of type `set` with objects as items"],
        );
        check(
            set(json!({"type": "string", "nullable": true})),
            &[": items of a list of type `set` or `map` must not be `null`"],
        );
    }
}
