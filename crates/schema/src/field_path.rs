//! Looks up a field in a schema by its path.

use std::borrow::Cow;

use rbuilder_diagnostic::suggest::find_nearest;

use crate::{Schema, SchemaType};

/// Where a path into a schema ends.
#[derive(Clone, Debug, PartialEq)]
pub enum PathEnd<'s> {
    /// At a value that has a schema.
    Schema(&'s Schema),
    /// In content that the schema doesn't describe.
    Open,
    /// At a field that doesn't exist.
    Missing {
        /// The segment of the path that is missing.
        name: String,
        /// The name of the most similar field, for a suggestion.
        near: Option<&'s str>,
    },
}

/// Returns the name of the field that is most similar to a name that isn't a field.
pub fn find_near_field<'s>(schema: &'s Schema, name: &str) -> Option<&'s str> {
    find_nearest(name, schema.properties.keys().map(AsRef::as_ref))
}

/// Returns the schema of a field of an object, or that of the values if it's a map.
pub fn member<'s>(schema: &'s Schema, name: &str) -> Option<&'s Schema> {
    schema
        .properties
        .get(name)
        .map(AsRef::as_ref)
        .or(schema.additional_properties.as_deref())
}

/// Returns the schema of the items of a list. They preserve unknown fields if the list does,
/// because the API server passes this setting on to the items and to nested lists (but not to
/// anything else).
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

/// Returns whether an object may have fields that its schema doesn't describe.
pub fn is_open(schema: &Schema) -> bool {
    schema.preserve_unknown_fields
        || schema.embedded_resource
        || schema.schema_type == Some(SchemaType::Object)
            && schema.properties.is_empty()
            && schema.additional_properties.is_none()
}

/// Looks up a path like `.spec.replicas`. That is the only syntax that the scale subresource and
/// field selectors support.
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
