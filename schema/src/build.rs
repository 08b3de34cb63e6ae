//! Schemas of std's containers and of open content: what both front ends build from the schemas of parts.

use std::sync::Arc;

use crate::{Closed, ListType, Schema, SchemaType};

/// A value of one type, with nothing else said.
pub fn of_type(schema_type: SchemaType) -> Schema {
    Schema {
        schema_type: Some(schema_type),
        ..Schema::default()
    }
}

/// Any value at all, kept as it is: `serde_json::Value`.
pub fn any() -> Schema {
    Schema {
        preserve_unknown_fields: true,
        ..Schema::default()
    }
}

/// Any object, kept as it is: `serde_json::Map`, `RawExtension`.
pub fn any_object() -> Schema {
    Schema {
        preserve_unknown_fields: true,
        ..of_type(SchemaType::Object)
    }
}

/// A whole number or a text.
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

/// A value in a list or map whose type is an `Option`: nothing drops a `null` there, so it must be allowed.
pub fn or_null(schema: impl Into<Arc<Schema>>) -> Arc<Schema> {
    let mut schema = schema.into();
    // Content of any form can be `null` already.
    if schema.schema_type.is_some() || schema.int_or_string {
        allow_null(Arc::make_mut(&mut schema));
    }
    schema
}

/// Makes a value nullable. The API server holds `null` against an `enum` and finds it in none, not even in one that
/// lists it; of what stands in `allOf` it asks everything but `null`.
pub(crate) fn allow_null(schema: &mut Schema) {
    schema.nullable = true;
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

/// `HashSet<T>`, `BTreeSet<T>`. The API server holds lists of type `set` to scalar items other than `null`; a
/// set of anything else is a plain list.
pub fn set_of(items: impl Into<Arc<Schema>>) -> Schema {
    let items = items.into();
    let list_type = (is_scalar(&items) && !items.nullable).then_some(ListType::Set);
    Schema {
        list_type,
        ..array_of(items)
    }
}

/// `BTreeMap<K, V>`, `HashMap<K, V>`. JSON has no keys but strings; an enum of unit variants gives a fixed
/// set of them. A map of anything is any object.
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

/// Returns whether values are scalars, as items of a set and keys of a list of type `map` must be.
pub(crate) fn is_scalar(schema: &Schema) -> bool {
    use SchemaType::{Boolean, Integer, Number, String};
    schema.int_or_string || matches!(schema.schema_type, Some(Boolean | Integer | Number | String))
}
