//! The fields of an object as a page shows them.

use rbuilder_schema::{Cel, Schema, SchemaType};
use serde_json::Value;

use super::facts::{innermost, layers};

/// A field of an object.
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a Schema,
    /// True if users must set it: the API server sets a field with a default.
    pub(super) is_required: bool,
}

/// Returns the fields of a value, those of its items for a list: the required ones first, each by name.
pub(super) fn fields_of(schema: &Schema) -> Vec<Field<'_>> {
    let inner = innermost(schema);
    let mut fields: Vec<Field<'_>> = inner
        .properties
        .iter()
        .map(|(name, schema)| Field {
            name,
            schema,
            is_required: inner.required.contains(name) && schema.default.is_none(),
        })
        .collect();
    fields.sort_by_key(|field| !field.is_required);
    fields
}

/// Returns the fields of whole objects, without those that every object has in the same form, and in the order of
/// manifests: spec, others, status.
pub(super) fn fields_of_object(schema: &Schema) -> Vec<Field<'_>> {
    let mut fields = fields_of(schema);
    fields.retain(|field| !is_common(field));
    fields.sort_by_key(|field| match field.name {
        "metadata" => 0,
        "spec" => 1,
        "status" => 3,
        _ => 2,
    });
    fields
}

/// Returns whether a field of an object is one of `apiVersion`, `kind` and `metadata`, and its schema says nothing that
/// users do not know.
fn is_common(field: &Field<'_>) -> bool {
    let schema = field.schema;
    match field.name {
        "apiVersion" | "kind" => schema.schema_type == Some(SchemaType::String),
        "metadata" => schema.properties.is_empty() && schema.validations.is_empty(),
        _ => false,
    }
}

/// Returns the values that a value may have, or its items, with the words for those.
pub(super) fn allowed_values(schema: &Schema) -> Vec<(String, &[Value])> {
    let layers = layers(schema).into_iter();
    layers
        .filter(|(_, layer)| !layer.enumeration.is_empty())
        .map(|(place, layer)| (place, layer.enumeration.as_slice()))
        .collect()
}

/// Returns the CEL rules on a value and on its items, with the words for those.
pub(super) fn rules_of(schema: &Schema) -> Vec<(String, &Cel)> {
    let layers = layers(schema).into_iter();
    layers
        .flat_map(|(place, layer)| layer.validations.iter().map(move |rule| (place.clone(), rule)))
        .collect()
}

/// Returns the description of a value; of its items if it has none itself.
pub(super) fn description_of(schema: &Schema) -> &str {
    let mut layers = layers(schema).into_iter();
    layers
        .find_map(|(_, layer)| layer.description.as_deref())
        .unwrap_or_default()
}
