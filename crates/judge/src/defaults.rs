//! Schema defaulting.

use rbuilder_schema::Schema;
use serde_json::Value;

use crate::prune::{field_schema, has_default};

/// Sets the defaults of absent fields, and of fields whose `null` isn't allowed. Doesn't create
/// absent objects to default their fields.
pub fn fill_defaults(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in &schema.properties {
                if let Some(default) = inner.default.as_ref().filter(|_| has_default(inner))
                    && fields
                        .get(&**name)
                        .is_none_or(|value| value.is_null() && !inner.nullable)
                {
                    fields.insert(name.to_string(), default.clone());
                }
            }
            for (name, value) in fields {
                if let Some(inner) = field_schema(schema, name) {
                    if !schema.properties.contains_key(name.as_str()) {
                        replace_null(value, inner);
                    }
                    fill_defaults(value, inner);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for item in items {
                    replace_null(item, inner);
                    fill_defaults(item, inner);
                }
            }
        }
        _ => {}
    }
}

fn replace_null(value: &mut Value, schema: &Schema) {
    if value.is_null() && !schema.nullable && has_default(schema) {
        value.clone_from(schema.default.as_ref().unwrap_or(&Value::Null));
    }
}
