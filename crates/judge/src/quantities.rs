//! Quantities in objects of built-in kinds.

use rbuilder_cel::canonical_quantity;
use rbuilder_schema::{Schema, is_quantity};
use serde_json::Value;

/// Replaces each quantity with its canonical form, which is what the server stores and returns:
/// `1024Mi` becomes `1Gi`, and the number 0.5 becomes `500m`. Leaves malformed quantities to
/// validation.
pub(crate) fn canonicalize_quantities(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let part = schema.properties.get(name.as_str());
                if let Some(part) = part.or(schema.additional_properties.as_ref()) {
                    canonicalize_quantities(field, part);
                }
            }
        }
        Value::Array(items) => {
            if let Some(part) = &schema.items {
                items
                    .iter_mut()
                    .for_each(|item| canonicalize_quantities(item, part));
            }
        }
        Value::String(_) | Value::Number(_) if is_quantity(schema) => {
            let canonical = match &*value {
                Value::String(text) => canonical_quantity(text),
                number => canonical_quantity(&number.to_string()),
            };
            if let Some(canonical) = canonical {
                *value = canonical.into();
            }
        }
        _ => {}
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
        canonicalize_quantities(&mut limits, &map_of(&of_type(SchemaType::String), quantity));
        let expected =
            json!({ "a": "500m", "b": "2", "c": "1Gi", "d": "1536Mi", "e": "1", "f": "1e3", "g": "x" });
        assert_eq!(limits, expected);
    }
}
