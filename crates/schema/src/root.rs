//! The API server's requirements on the schema of an entire object, beyond those on every
//! structural schema.

use rbuilder_diagnostic::Diagnostic;

use crate::{KEYS, Key, Schema, SchemaType};

/// The parts of an object, which determine the applicable rules and suggestions.
#[derive(Clone, Copy, Debug)]
pub struct ObjectParts {
    /// True if the user's fields are in `spec`.
    pub has_spec: bool,
    /// True if the status is a subresource.
    pub has_status_subresource: bool,
}

/// Checks the rules for root schemas and returns an error for each violation. The error's place is
/// the path of a value (e.g. `.metadata`), empty for the object itself. There are no errors if they
/// [have been reported](Schema::is_reported).
///
/// Follows `ValidateStructural` in apiextensions-apiserver and, if the status is a subresource,
/// `allowedFieldsAtRootSchema`.
pub fn check_root(root: &Schema, parts: ObjectParts) -> Vec<Diagnostic<String>> {
    if root.is_reported.0 {
        return Vec::new();
    }
    let mut diagnostics = check_stanza(root, "");
    let mut error = |path: &str, message: String, help: &str| {
        diagnostics.push(Diagnostic::error(path.to_owned(), message).help(help));
    };
    if let Some(other) = root.schema_type.filter(|is| *is != SchemaType::Object) {
        let message = format!("an object must be of type `object`, found `{}`", other.as_str());
        error("", message, "write `\"type\": \"object\"`");
    }
    if root.nullable {
        error("", "an object must not be nullable".into(), "remove `nullable`");
    }
    if root.additional_properties.is_some() {
        let help = "write the fields of the object, or accept any with `preserve_unknown_fields`";
        error("", "an object must not have `additionalProperties`".into(), help);
    }
    if root.default.is_some() {
        let help = match parts.has_spec {
            true => "move it to `spec`",
            false => "remove it: its fields can have defaults",
        };
        error("", "an object must not have a default".into(), help);
    }
    if parts.has_status_subresource {
        let refused = KEYS.iter().filter(|key| key.is_refused_with_status());
        for key in refused.filter(|key| key.is_set(root)).map(|key| key.name) {
            let message = format!("an object with a status subresource cannot have `{key}`");
            let help = match (parts.has_spec, key) {
                (true, _) => "move it to the type of `spec`, or write a rule in CEL: `cel(…)`",
                (false, "x-kubernetes-map-type" | "x-kubernetes-embedded-resource") => "remove it",
                (false, _) => "write a rule in CEL instead: `cel(…)`",
            };
            error("", message, help);
        }
    }
    if let Some(metadata) = root.properties.get("metadata") {
        for key in unknown_metadata_keys(metadata) {
            let help = "constrain only `name` and `generateName`: the API server knows the other fields";
            error(".metadata", format!("`metadata` cannot have `{key}`"), help);
        }
    }
    diagnostics
}

pub(crate) fn check_stanza(object: &Schema, path: &str) -> Vec<Diagnostic<String>> {
    let fields = [
        ("apiVersion", SchemaType::String),
        ("kind", SchemaType::String),
        ("metadata", SchemaType::Object),
    ];
    let wrong = |(name, expected): (&str, SchemaType)| {
        let found = object.properties.get(name)?.schema_type;
        if found == Some(expected) {
            return None;
        }
        let mut message = format!("`{name}` must be of type `{}`", expected.as_str());
        if let Some(found) = found {
            message += &format!(", found `{}`", found.as_str());
        }
        let help = format!("write `\"type\": \"{}\"`", expected.as_str());
        Some(Diagnostic::error(format!("{path}.{name}"), message).help(help))
    };
    fields.into_iter().filter_map(wrong).collect()
}

/// Returns the invalid keys of a `metadata` schema: only the type and constraints on `name` and
/// `generateName` are allowed.
fn unknown_metadata_keys(metadata: &Schema) -> Vec<String> {
    let known = |name: &str| ["name", "generateName"].contains(&name);
    let fields = metadata.properties.keys().filter(|name| !known(name));
    let fields = fields.map(|name| format!("properties.{name}"));
    let is_unknown = |key: &&Key| !matches!(key.name, "type" | "properties") && key.is_set(metadata);
    let keys = KEYS.iter().filter(is_unknown).map(|key| key.name.to_owned());
    fields.chain(keys).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(keys: Value, has_status_subresource: bool, expected: &[&str]) {
        let parts = ObjectParts {
            has_spec: true,
            has_status_subresource,
        };
        let mut schema = json!({ "type": "object" });
        schema
            .as_object_mut()
            .unwrap()
            .extend(keys.as_object().unwrap().clone());
        let root: Schema = serde_json::from_value(schema).expect("a schema");
        let found: Vec<_> = check_root(&root, parts)
            .iter()
            .map(|diagnostic| format!("{}: {}", diagnostic.place, diagnostic.message))
            .collect();
        assert_eq!(found, expected, "{keys}");
    }

    #[test]
    fn rejects_invalid_keys_of_root() {
        check(json!({ "description": "A", "required": ["spec"] }), true, &[]);
        check(
            json!({ "type": "string" }),
            true,
            &[": an object must be of type `object`, found `string`"],
        );
        check(
            json!({ "nullable": true }),
            false,
            &[": an object must not be nullable"],
        );
        check(
            json!({ "additionalProperties": { "type": "string" } }),
            false,
            &[": an object must not have `additionalProperties`"],
        );
        check(
            json!({ "default": {} }),
            false,
            &[": an object must not have a default"],
        );
    }

    #[test]
    fn rejects_root_keys_with_status_subresource() {
        let alternatives = json!([{ "required": ["spec"] }]);
        for (key, value) in [
            ("allOf", alternatives.clone()),
            ("anyOf", alternatives.clone()),
            ("oneOf", alternatives),
            ("not", json!({ "required": ["spec"] })),
            ("enum", json!([{}])),
            ("minProperties", json!(1)),
            ("maxProperties", json!(1)),
            ("x-kubernetes-map-type", json!("atomic")),
            ("x-kubernetes-embedded-resource", json!(true)),
        ] {
            let keys = json!({ key: value });
            check(keys.clone(), false, &[]);
            check(
                keys,
                true,
                &[&format!(
                    ": an object with a status subresource cannot have `{key}`"
                )],
            );
        }
        let rule = json!([{ "rule": "true" }]);
        check(json!({ "x-kubernetes-validations": rule }), true, &[]);
        check(json!({ "x-kubernetes-preserve-unknown-fields": true }), true, &[]);
    }

    #[test]
    fn checks_fields_of_every_object() {
        let fields = |name: &str, schema: Value| json!({ "properties": { name: schema } });
        let name =
            json!({ "type": "object", "properties": { "name": { "type": "string", "maxLength": 20 } } });
        check(fields("metadata", name), true, &[]);
        check(
            fields("metadata", json!({ "type": "string" })),
            true,
            &[".metadata: `metadata` must be of type `object`, found `string`"],
        );
        check(
            fields("kind", json!({ "x-kubernetes-preserve-unknown-fields": true })),
            true,
            &[".kind: `kind` must be of type `string`"],
        );
        let labels = json!({ "type": "object", "properties": { "labels": { "type": "object" } } });
        check(
            fields("metadata", labels),
            true,
            &[".metadata: `metadata` cannot have `properties.labels`"],
        );
        check(
            fields(
                "metadata",
                json!({ "type": "object", "default": {}, "description": "A" }),
            ),
            true,
            &[
                ".metadata: `metadata` cannot have `default`",
                ".metadata: `metadata` cannot have `description`",
            ],
        );
    }
}
