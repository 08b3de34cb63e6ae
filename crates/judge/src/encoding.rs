//! How Go encodes objects of built-in kinds, which differs from what clients sent.

use rbuilder_kubernetes::quantity;
use rbuilder_schema::{Schema, SchemaType, is_quantity};
use serde_json::Value;

/// Encodes a decoded object as Go does, which is what the server stores and returns:
///
/// - Each quantity gets its canonical form: `1024Mi` becomes `1Gi`, and the number 0.5 becomes
///   `500m`. Leaves malformed quantities to validation.
/// - Optional lists and maps that are empty are dropped. A struct without fields isn't, because it's
///   a pointer if it's optional.
pub(crate) fn encode(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let declared = schema.properties.get(name.as_str());
            let Some(part) = declared.or(schema.additional_properties.as_ref()) else {
                return true;
            };
            encode(field, part);
            let is_optional = declared.is_some() && !schema.required.contains(name.as_str());
            !(is_optional && is_empty_collection(field, part))
        }),
        Value::Array(items) => {
            if let Some(part) = &schema.items {
                items.iter_mut().for_each(|item| encode(item, part));
            }
        }
        Value::String(_) | Value::Number(_) if is_quantity(schema) => {
            let canonical = match &*value {
                Value::String(text) => quantity::canonical(text),
                number => quantity::canonical(&number.to_string()),
            };
            if let Some(canonical) = canonical {
                *value = canonical.into();
            }
        }
        _ => {}
    }
}

fn is_empty_collection(value: &Value, schema: &Schema) -> bool {
    match value {
        Value::Array(items) => items.is_empty() && schema.schema_type == Some(SchemaType::Array),
        Value::Object(fields) => fields.is_empty() && schema.additional_properties.is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rbuilder_schema::{SchemaType, known, map_of, of_type};
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_get_their_canonical_form() {
        let quantity = known("k8s_openapi::apimachinery::pkg::api::resource::Quantity").expect("a schema");
        let mut limits =
            json!({ "a": 0.5, "b": 2, "c": "1024Mi", "d": "1.5Gi", "e": "1000m", "f": "1e3", "g": "x" });
        encode(&mut limits, &map_of(&of_type(SchemaType::String), quantity));
        let expected =
            json!({ "a": "500m", "b": "2", "c": "1Gi", "d": "1536Mi", "e": "1", "f": "1e3", "g": "x" });
        assert_eq!(limits, expected);
    }

    #[test]
    fn empty_optional_collections_are_dropped() {
        let text = of_type(SchemaType::String);
        let list = Schema {
            items: Some(text.clone().into()),
            ..of_type(SchemaType::Array)
        };
        let mut schema = of_type(SchemaType::Object);
        for (name, part) in [
            ("list", list.clone()),
            ("rules", list),
            ("map", map_of(&text, text.clone())),
            ("struct", of_type(SchemaType::Object)),
            ("text", text.clone()),
        ] {
            schema.properties.insert(name.into(), part.into());
        }
        schema.required = ["rules".into()].into();
        let mut object = json!({ "list": [], "rules": [], "map": {}, "struct": {}, "text": "" });
        encode(&mut object, &schema);
        assert_eq!(object, json!({ "rules": [], "struct": {}, "text": "" }));
    }
}
