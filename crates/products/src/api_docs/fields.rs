//! The fields of an object in page order.

use rbuilder_schema::{Cel, Schema, SchemaType};
use serde_json::Value;

use super::facts::{innermost, layers};

pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a Schema,
    /// Whether users must set the field. False with a default, which the API server fills in.
    pub(super) is_required: bool,
}

/// The fields of a value, or of its items if it is a list. Required fields first, then by name.
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

/// Top-level fields in the order of a manifest: spec, others, status. Fields common to all objects
/// are left out.
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

/// Whether the field is `apiVersion`, `kind` or `metadata` with a schema that adds nothing of
/// interest.
fn is_common(field: &Field<'_>) -> bool {
    let schema = field.schema;
    match field.name {
        "apiVersion" | "kind" => schema.schema_type == Some(SchemaType::String),
        "metadata" => schema.properties.is_empty() && schema.validations.is_empty(),
        _ => false,
    }
}

pub(super) fn allowed_values(schema: &Schema) -> Vec<(String, &[Value])> {
    let layers = layers(schema).into_iter();
    layers
        .filter(|(_, layer)| !layer.enumeration.is_empty())
        .map(|(place, layer)| (place, layer.enumeration.as_slice()))
        .collect()
}

pub(super) fn rules_of(schema: &Schema) -> Vec<(String, &Cel)> {
    let layers = layers(schema).into_iter();
    layers
        .flat_map(|(place, layer)| layer.validations.iter().map(move |rule| (place.clone(), rule)))
        .collect()
}

/// Description of a value. Falls back to the description of its items.
pub(super) fn description_of(schema: &Schema) -> &str {
    let mut layers = layers(schema).into_iter();
    layers
        .find_map(|(_, layer)| layer.description.as_deref())
        .unwrap_or_default()
}
