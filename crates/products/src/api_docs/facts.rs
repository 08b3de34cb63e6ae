//! Describes the type and constraints of a value, i.e. everything but its fields.

use rbuilder_schema::{Form, Key, ListType, MapType, Schema, SchemaType};

use super::fact::Fact;
use super::variants::describe_variants;

/// Formats a type in Go notation, e.g. `[]string`, `map[string]object` or `integer`.
pub(super) fn type_name(schema: &Schema) -> String {
    if schema.int_or_string {
        return "integer or string".into();
    }
    match (schema.schema_type, &schema.items, &schema.additional_properties) {
        (Some(SchemaType::Array), Some(items), _) => format!("[]{}", type_name(items)),
        (Some(SchemaType::Array), None, _) => "[]any".into(),
        (Some(SchemaType::Object), _, Some(values)) => format!("map[string]{}", type_name(values)),
        (Some(named), _, _) => named.as_str().into(),
        (None, ..) => "any".into(),
    }
}

/// The schema that has the fields of a value: unwraps lists and maps at any depth.
pub(super) fn innermost(schema: &Schema) -> &Schema {
    let mut inner = schema;
    while let Some(next) = inner.items.as_ref().or(inner.additional_properties.as_ref()) {
        inner = next;
    }
    inner
}

/// The schemas of a value, its items or map values, their items, and so on. Each has a phrase for
/// its place, e.g. "each item".
pub(super) fn layers(schema: &Schema) -> Vec<(String, &Schema)> {
    let mut layers = vec![(String::new(), schema)];
    let mut current = schema;
    loop {
        let (next, word) = match (&current.items, &current.additional_properties) {
            (Some(items), _) => (items, "each item"),
            (None, Some(values)) => (values, "each value"),
            (None, None) => return layers,
        };
        let above = &layers[layers.len() - 1].0;
        let place = if above.is_empty() {
            word.to_owned()
        } else {
            format!("{word} of {above}")
        };
        layers.push((place, next));
        current = next;
    }
}

pub(super) fn collect_facts(schema: &Schema) -> Vec<Fact> {
    let mut facts = Vec::new();
    for (place, layer) in layers(schema) {
        let start = facts.len();
        // The format of the value itself is part of its type.
        if !place.is_empty() {
            facts.extend(layer.format.as_ref().map(|format| Fact {
                label: "format".into(),
                code: format.to_string(),
            }));
        }
        add_bounds(layer, &mut facts);
        add_topology(layer, &mut facts);
        add_alternatives(layer, &mut facts);
        if !place.is_empty() {
            for fact in &mut facts[start..] {
                fact.label = format!("{place}: {}", fact.label);
            }
        }
    }
    facts
}

fn add_bounds(schema: &Schema, facts: &mut Vec<Fact>) {
    let fact = |key: &'static Key| {
        let label = match key.name {
            "minimum" if schema.exclusive_minimum => "greater than".to_owned(),
            "maximum" if schema.exclusive_maximum => "less than".to_owned(),
            _ => key.argument.replace('_', " "),
        };
        let code = match key.form {
            Form::Number(number) => number.get(schema).as_ref().map(ToString::to_string),
            Form::Count(count) => count.get(schema).map(|count| count.to_string()),
            // The format is part of the type.
            Form::Text(text) if key.name != "format" => text.get(schema).as_ref().map(ToString::to_string),
            _ => None,
        };
        Some(Fact { label, code: code? })
    };
    facts.extend(Key::arguments().filter_map(fact));
    facts.extend(schema.example.as_ref().map(|example| Fact {
        label: "example".into(),
        code: example.to_string(),
    }));
}

/// Describes how server-side apply merges the value, and whether unknown fields are kept.
fn add_topology(schema: &Schema, facts: &mut Vec<Fact>) {
    let mut add = |label: &str, code: String| {
        facts.push(Fact {
            label: label.into(),
            code,
        })
    };
    match schema.list_type {
        Some(ListType::Map) => add("items merge by", schema.list_map_keys.join(", ")),
        Some(ListType::Set) => add("items are unique", String::new()),
        Some(ListType::Atomic) | None => {}
    }
    match (schema.list_type, schema.map_type) {
        (Some(ListType::Atomic), _) | (_, Some(MapType::Atomic)) => add("replaced as a whole", String::new()),
        _ => {}
    }
    if schema.nullable {
        add("can be", "null".into());
    }
    if schema.embedded_resource {
        add("a complete Kubernetes object", String::new());
    }
    if schema.preserve_unknown_fields {
        add("any other fields are kept", String::new());
    }
}

fn add_alternatives(schema: &Schema, facts: &mut Vec<Fact>) {
    for (label, branches) in [
        ("exactly one of", &schema.one_of),
        ("at least one of", &schema.any_of),
        ("all of", &schema.all_of),
    ] {
        if label == "exactly one of"
            && let Some(variants) = describe_variants(branches)
        {
            facts.extend(variants);
            continue;
        }
        // For an int-or-string, these usually just repeat its two types.
        let is_idiom = schema.int_or_string && label != "exactly one of";
        if !branches.is_empty() && !is_idiom {
            let branches: Vec<String> = branches.iter().map(branch).collect();
            facts.push(Fact {
                label: label.into(),
                code: branches.join(" | "),
            });
        }
    }
    if let Some(not) = &schema.not {
        facts.push(Fact {
            label: "none of".into(),
            code: branch(not),
        });
    }
}

/// Short form of a value validation: field names if it only requires fields, else JSON.
fn branch(schema: &Schema) -> String {
    let required: Vec<&str> = schema.required.iter().map(AsRef::as_ref).collect();
    let rest = Schema {
        required: Default::default(),
        ..schema.clone()
    };
    if !required.is_empty() && rest == Schema::default() {
        return required.join(" + ");
    }
    serde_json::to_string(schema).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn schema(value: Value) -> Schema {
        serde_json::from_value(value).expect("a schema")
    }

    #[test]
    fn names_types() {
        for (value, expected) in [
            (json!({ "type": "integer", "format": "int32" }), "integer"),
            (json!({ "x-kubernetes-int-or-string": true }), "integer or string"),
            (json!({ "x-kubernetes-preserve-unknown-fields": true }), "any"),
            (
                json!({ "type": "array", "items": { "type": "array", "items": { "type": "string" } } }),
                "[][]string",
            ),
            (json!({ "type": "array" }), "[]any"),
            (
                json!({ "type": "object", "additionalProperties": { "type": "object" } }),
                "map[string]object",
            ),
        ] {
            assert_eq!(type_name(&schema(value)), expected);
        }
    }

    #[track_caller]
    fn check(value: Value, expected: &[&str]) {
        let facts = collect_facts(&schema(value));
        let facts: Vec<String> = facts
            .iter()
            .map(|fact| format!("{} {}", fact.label, fact.code))
            .collect();
        let facts: Vec<&str> = facts.iter().map(|fact| fact.trim()).collect();
        assert_eq!(facts, expected);
    }

    #[test]
    fn describes_constraints() {
        check(
            json!({ "type": "integer", "minimum": 1, "maximum": 5, "exclusiveMaximum": true, "format": "int32" }),
            &["minimum 1", "less than 5"],
        );
        check(
            json!({ "type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"],
                    "items": { "type": "string", "pattern": "^a|b$" } }),
            &[
                "max items 3",
                "items merge by name, port",
                "each item: pattern ^a|b$",
            ],
        );
        check(
            json!({ "type": "object", "oneOf": [{ "required": ["a"] }, { "required": ["b", "c"] }] }),
            &["exactly one of a | b + c"],
        );
        check(
            json!({ "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] }),
            &[],
        );
    }
}
