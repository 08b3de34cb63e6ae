//! Looks up a field in a schema by its path.

use std::borrow::Cow;

use rbuilder_diagnostic::suggest::find_nearest;

use crate::{Schema, SchemaType};

/// The end of a path into a schema.
#[derive(Clone, Debug, PartialEq)]
pub enum PathEnd<'s> {
    /// A value with a schema.
    Schema(&'s Schema),
    /// Content that the schema doesn't describe.
    Open,
    /// A nonexistent field.
    Missing {
        /// The missing segment of the path.
        name: String,
        /// The name of the most similar field, for suggestions.
        near: Option<&'s str>,
    },
}

/// Returns the name of the field most similar to an unknown name.
pub fn find_near_field<'s>(schema: &'s Schema, name: &str) -> Option<&'s str> {
    find_nearest(name, schema.properties.keys().map(AsRef::as_ref))
}

/// Returns the schema of an object's field, or of the values of a map.
pub fn member<'s>(schema: &'s Schema, name: &str) -> Option<&'s Schema> {
    schema
        .properties
        .get(name)
        .map(AsRef::as_ref)
        .or(schema.additional_properties.as_deref())
}

/// Returns the schema of a list's items. They preserve unknown fields if the list does: the API
/// server passes this setting on to items and nested lists (but to nothing else).
pub fn items_of(list: &Schema) -> Option<Cow<'_, Schema>> {
    let items = list.items.as_deref()?;
    if !list.preserve_unknown_fields || items.preserve_unknown_fields {
        return Some(Cow::Borrowed(items));
    }
    Some(Cow::Owned(Schema {
        preserve_unknown_fields: true,
        ..items.clone()
    }))
}

/// Returns whether an object may have fields not described by its schema.
pub fn is_open(schema: &Schema) -> bool {
    schema.preserve_unknown_fields
        || schema.embedded_resource
        || schema.schema_type == Some(SchemaType::Object)
            && schema.properties.is_empty()
            && schema.additional_properties.is_none()
}

/// Looks up a path like `.spec.replicas`, the only syntax supported by the scale subresource and
/// field selectors.
pub fn find_field<'s>(root: &'s Schema, path: &str) -> PathEnd<'s> {
    let mut schema = root;
    for name in path.strip_prefix('.').unwrap_or(path).split('.') {
        schema = match member(schema, name) {
            Some(next) => next,
            None if is_open(schema) => return PathEnd::Open,
            None => {
                return PathEnd::Missing {
                    name: name.to_owned(),
                    near: find_near_field(schema, name),
                };
            }
        };
    }
    PathEnd::Schema(schema)
}
