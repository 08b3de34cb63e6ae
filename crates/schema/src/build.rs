//! Constructors, used by both front ends, for the schemas of std's containers and of arbitrary
//! content.

use std::sync::Arc;

use crate::{Closed, ListType, Schema, SchemaType};

/// A value of a single type, without constraints.
pub fn of_type(schema_type: SchemaType) -> Schema {
    Schema {
        schema_type: Some(schema_type),
        ..Schema::default()
    }
}

/// Any value, e.g. a `serde_json::Value`. Unknown fields are kept.
pub fn any() -> Schema {
    Schema {
        preserve_unknown_fields: true,
        ..Schema::default()
    }
}

/// Any object, e.g. a `serde_json::Map` or a `RawExtension`. Unknown fields are kept.
pub fn any_object() -> Schema {
    Schema {
        preserve_unknown_fields: true,
        ..of_type(SchemaType::Object)
    }
}

/// An integer or a string.
pub fn int_or_string() -> Schema {
    Schema {
        any_of: vec![of_type(SchemaType::Integer), of_type(SchemaType::String)],
        int_or_string: true,
        ..Schema::default()
    }
}

/// `Vec<T>`, `VecDeque<T>`, `[T]`.
pub fn array_of(items: impl Into<Arc<Schema>>) -> Schema {
    Schema {
        items: Some(items.into()),
        ..of_type(SchemaType::Array)
    }
}

/// The schema of an `Option` inside of a list or a map. It has to allow `null`, which the API
/// server only drops from fields.
pub fn or_null(schema: impl Into<Arc<Schema>>) -> Arc<Schema> {
    let mut schema = schema.into();
    // A schema without a type already accepts `null`.
    if schema.schema_type.is_some() || schema.int_or_string {
        allow_null(Arc::make_mut(&mut schema));
    }
    schema
}

pub(crate) fn allow_null(schema: &mut Schema) {
    schema.nullable = true;
    // If the schema itself has an `enum`, the API server rejects `null`, even if listed. It doesn't
    // check `null` against `allOf`, so move the `enum` there.
    let mut enumeration = std::mem::take(&mut schema.enumeration);
    enumeration.retain(|value| !value.is_null());
    if !enumeration.is_empty() {
        schema.all_of.push(Schema {
            enumeration,
            ..Schema::default()
        });
    }
}

/// `[T; N]`.
pub fn array_of_length(items: impl Into<Arc<Schema>>, length: u64) -> Schema {
    Schema {
        min_items: Some(length),
        max_items: Some(length),
        ..array_of(items)
    }
}

/// `HashSet<T>`, `BTreeSet<T>`. In a list of type `set`, the API server only allows non-nullable
/// scalars, so a set of anything else is a plain list.
pub fn set_of(items: impl Into<Arc<Schema>>) -> Schema {
    let items = items.into();
    let list_type = (is_scalar(&items) && !items.nullable).then_some(ListType::Set);
    Schema {
        list_type,
        ..array_of(items)
    }
}

/// `BTreeMap<K, V>`, `HashMap<K, V>`. JSON keys are strings, so only an enum of unit variants
/// further restricts the keys: each variant becomes a property. A map of arbitrary values becomes
/// any object.
pub fn map_of(keys: &Schema, values: impl Into<Arc<Schema>>) -> Schema {
    let values = values.into();
    let names: Option<Vec<&str>> = keys.enumeration.iter().map(serde_json::Value::as_str).collect();
    match names {
        Some(names) if !names.is_empty() => Schema {
            properties: names
                .into_iter()
                .map(|name| (name.into(), Arc::clone(&values)))
                .collect(),
            closed: Closed(true),
            ..of_type(SchemaType::Object)
        },
        _ if *values == any() => any_object(),
        _ => Schema {
            additional_properties: Some(values),
            ..of_type(SchemaType::Object)
        },
    }
}

pub(crate) fn is_scalar(schema: &Schema) -> bool {
    use SchemaType::{Boolean, Integer, Number, String};
    schema.int_or_string || matches!(schema.schema_type, Some(Boolean | Integer | Number | String))
}
