//! CEL's view of values in an object: `k8s.io/apiserver/pkg/cel/common/valuesunstructured.go`.
//!
//! Values are converted lazily, so a value that doesn't match its schema only affects rules that
//! read it.

use std::sync::LazyLock;

use rbuilder_schema::{ListType, Schema, SchemaType, cel_name};
use serde_json::Value as Json;

use super::library::base64;
use super::library::time::{self, parse_duration_format};
use super::value::{List, ListKind, Map, Value};
use super::{Outcome, Stop};

#[derive(Clone, Copy, Debug)]
pub(super) struct JsonList<'v> {
    pub(super) items: &'v [Json],
    schema: &'v Schema,
    item_schema: &'v Schema,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct JsonMap<'v> {
    pub(super) fields: &'v serde_json::Map<String, Json>,
    schema: &'v Schema,
    /// Whether `apiVersion`, `kind` and the name are accessible.
    is_object: bool,
}

/// Converts a value. `is_object` is set for complete objects, i.e. those with `apiVersion`, `kind`
/// and metadata.
pub(super) fn read<'v>(json: &'v Json, schema: &'v Schema, is_object: bool) -> Outcome<'v> {
    if json.is_null() {
        return match schema.nullable {
            true => Ok(Value::Null),
            false => invalid("invalid data, got null for schema with nullable=false"),
        };
    }
    if schema.int_or_string {
        return match json {
            Json::String(text) => Ok(Value::string(text.as_str())),
            json => match json.as_i64() {
                Some(number) => Ok(Value::Int(number)),
                None => invalid("invalid data, expected XIntOrString value to be either a string or integer"),
            },
        };
    }
    match schema.schema_type {
        Some(SchemaType::Object) => match json {
            Json::Object(fields) => Ok(Value::Map(Map::Json(JsonMap {
                fields,
                schema,
                is_object: is_object || schema.embedded_resource,
            }))),
            _ => invalid("invalid data, expected a map for the provided schema with type=object"),
        },
        Some(SchemaType::Array) => match (json, schema.items.as_deref()) {
            (Json::Array(items), Some(item_schema)) => Ok(Value::List(List::Json(JsonList {
                items,
                schema,
                item_schema,
            }))),
            (Json::Array(_), None) => invalid("invalid array type, expected Items with a non-empty Schema"),
            _ => invalid("invalid data, expected an array for the provided schema with type=array"),
        },
        Some(SchemaType::String) => match json {
            Json::String(text) => read_string(text, schema),
            json => invalid(&format!("invalid data, expected string, got {}", go_type(json))),
        },
        Some(SchemaType::Number) => match json.as_f64() {
            Some(number) => Ok(Value::Double(number)),
            None => invalid(&format!("invalid data, expected float, got {}", go_type(json))),
        },
        Some(SchemaType::Integer) => match json.as_i64() {
            Some(number) => Ok(Value::Int(number)),
            None => invalid(&format!("invalid data, expected int, got {}", go_type(json))),
        },
        Some(SchemaType::Boolean) => match json {
            Json::Bool(value) => Ok(Value::Bool(*value)),
            json => invalid(&format!("invalid data, expected bool, got {}", go_type(json))),
        },
        None if schema.preserve_unknown_fields => Ok(Value::Preserved(json)),
        None => invalid(
            "invalid type, expected object, array, number, integer, boolean or string, or no type with x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got ",
        ),
    }
}

/// Converts a value without a schema, e.g. an object in an admission request.
pub(super) fn read_untyped(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Double(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::string(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(read_untyped).collect()),
        Json::Object(fields) => {
            let fields = fields.iter();
            let entries = fields.map(|(name, value)| (Value::string(name.as_str()), read_untyped(value)));
            Value::Map(Map::Made(entries.collect::<Vec<_>>().into()))
        }
    }
}

fn invalid<'v>(message: &str) -> Outcome<'v> {
    Err(Stop::error(message))
}

fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}

fn read_string<'v>(text: &str, schema: &Schema) -> Outcome<'v> {
    // For date-times and bytes, Go's parsers are stricter than schema validation. Otherwise, schema
    // validation rejects the value anyway, and the reason that Go's parsers report isn't known.
    let unsupported = || Stop::Unsupported("the text does not have the format of its schema");
    match schema.format.as_deref() {
        Some("duration") => match parse_duration_format(text) {
            Some(duration) => Ok(Value::Duration(duration)),
            None => Err(unsupported()),
        },
        Some("date") => time::parse_date(text)
            .map(Value::Timestamp)
            .ok_or_else(unsupported),
        Some("date-time") => match time::parse_date_time(text) {
            Some(time) => Ok(Value::Timestamp(time)),
            None => {
                let reason = time::explain_date_time(text).ok_or_else(unsupported)?;
                invalid(&format!("Invalid date-time formatted string {text}: {reason}"))
            }
        },
        Some("byte") => match base64::decode(text) {
            Ok(bytes) => Ok(Value::Bytes(bytes.into())),
            Err(at) => invalid(&format!(
                "Invalid byte formatted string {text}: illegal base64 data at input byte {at}"
            )),
        },
        _ => Ok(Value::string(text)),
    }
}

impl<'v> JsonList<'v> {
    pub(super) fn get(&self, index: usize) -> Option<Outcome<'v>> {
        let item = self.items.get(index)?;
        Some(read(item, self.item_schema, false))
    }

    pub(super) fn kind(&self) -> ListKind<'v> {
        match self.schema.list_type {
            None | Some(ListType::Atomic) => ListKind::Atomic,
            Some(ListType::Set) => ListKind::Set,
            Some(ListType::Map) => ListKind::Map(&self.schema.list_map_keys),
        }
    }
}

struct ObjectFields {
    text: Schema,
    metadata: Schema,
}

static OBJECT_FIELDS: LazyLock<ObjectFields> = LazyLock::new(|| {
    let of_type = |schema_type| Schema {
        schema_type: Some(schema_type),
        ..Schema::default()
    };
    let text = of_type(SchemaType::String);
    let mut metadata = of_type(SchemaType::Object);
    for name in ["name", "generateName"] {
        metadata.properties.insert(name.into(), text.clone().into());
    }
    ObjectFields { text, metadata }
});

impl<'v> JsonMap<'v> {
    /// True for objects with named fields, false for maps.
    fn has_fields(&self) -> bool {
        self.is_object || !self.schema.properties.is_empty()
    }

    pub(super) fn schema_of(&self, key: &str) -> Option<&'v Schema> {
        match key {
            "apiVersion" | "kind" if self.is_object => return Some(&OBJECT_FIELDS.text),
            "metadata" if self.is_object => return Some(&OBJECT_FIELDS.metadata),
            _ => {}
        }
        match self.has_fields() {
            true => self.schema.properties.get(key).map(|property| &**property),
            false => self.schema.additional_properties.as_deref(),
        }
    }

    /// Looks up a field by its CEL name, or a map entry by key. `null` fields count as absent.
    pub(super) fn find(&self, key: &str) -> Option<Outcome<'v>> {
        let unescaped;
        let name = match self.has_fields() {
            true => {
                unescaped = self.unescape(key);
                unescaped.as_str()
            }
            false => key,
        };
        let value = self.fields.get(name)?;
        if self.has_fields() && value.is_null() {
            return None;
        }
        Some(read(value, self.schema_of(name)?, false))
    }

    fn unescape(&self, key: &str) -> String {
        // CEL names without `__` aren't escaped.
        let is_plain = !key.contains("__");
        if is_plain {
            return key.to_owned();
        }
        let mut names = self.fields.keys();
        let found = names.find(|name| cel_name(name).as_deref() == Some(key));
        found.map_or(key, String::as_str).to_owned()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = String> + '_ {
        let has_fields = self.has_fields();
        self.fields
            .keys()
            .filter(|name| self.schema_of(name).is_some())
            .map(move |name| match has_fields {
                true => cel_name(name).unwrap_or_else(|| name.clone()),
                false => name.clone(),
            })
    }
}
