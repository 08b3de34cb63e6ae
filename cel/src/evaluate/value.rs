//! CEL values, converted from JSON according to a schema.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rbuilder_schema::{ListType, Schema, SchemaType, cel_name};
use serde_json::Value as Json;

use super::Stop;

/// A CEL value. Bytes, durations, quantities and other library types are not modelled: using such a
/// value ends the evaluation with [`Stop::Unknown`].
#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    String(String),
    List(Vec<Value>),
    /// A list of type `set` or `map`. Comparing or adding such lists ignores the order, which the
    /// evaluator does not support.
    Unordered(Vec<Value>),
    /// A map, or an object with its fields by CEL name.
    Map(BTreeMap<String, Value>),
    Optional(Option<Box<Value>>),
    /// A part of the constant that is not modelled.
    Unmodelled,
}

impl Value {
    /// Converts JSON according to a schema.
    pub(super) fn read(json: &Json, schema: &Schema) -> Value {
        if schema.int_or_string {
            return match json {
                Json::String(text) => Value::String(text.clone()),
                json => json.as_i64().map_or(Value::Unmodelled, Value::Int),
            };
        }
        match (json, schema.schema_type) {
            (Json::Null, Some(_)) if schema.nullable => Value::Null,
            (Json::Bool(value), Some(SchemaType::Boolean)) => Value::Bool(*value),
            (Json::Number(number), Some(SchemaType::Integer)) => whole(number),
            (Json::Number(number), Some(SchemaType::Number)) => {
                number.as_f64().map_or(Value::Unmodelled, Value::Double)
            }
            (Json::String(text), Some(SchemaType::String)) => match schema.format.as_deref() {
                Some("byte" | "duration" | "date" | "date-time") => Value::Unmodelled,
                _ => Value::String(text.clone()),
            },
            (Json::Array(items), Some(SchemaType::Array)) => list(items, schema),
            (Json::Object(fields), Some(SchemaType::Object)) => match schema.additional_properties.as_deref()
            {
                Some(values) => Value::Map(
                    fields
                        .iter()
                        .map(|(key, value)| (key.clone(), Value::read(value, values)))
                        .collect(),
                ),
                None => object(fields, schema),
            },
            _ => Value::Unmodelled,
        }
    }

    /// Converts a whole object, whose `apiVersion`, `kind` and name are visible to rules.
    pub(super) fn read_object(json: &Json, schema: &Schema) -> Value {
        let mut value = Value::read(json, schema);
        let text = |json: &Json| json.as_str().map(|text| Value::String(text.to_owned()));
        if let Value::Map(fields) = &mut value {
            for name in ["apiVersion", "kind"] {
                fields.remove(name);
                fields.extend(json.get(name).and_then(text).map(|text| (name.to_owned(), text)));
            }
            fields.remove("metadata");
            if let Some(metadata) = json.get("metadata") {
                let names = ["name", "generateName"]
                    .into_iter()
                    .filter_map(|name| Some((name.to_owned(), metadata.get(name).and_then(text)?)));
                fields.insert("metadata".to_owned(), Value::Map(names.collect()));
            }
        }
        value
    }

    /// Returns whether two values are equal. Values of different types never are.
    pub(super) fn equals(&self, other: &Value) -> Result<bool, Stop> {
        Ok(match (self, other) {
            (Value::Unmodelled | Value::Unordered(_), _) | (_, Value::Unmodelled | Value::Unordered(_)) => {
                return Err(Stop::Unknown);
            }
            (Value::Null, Value::Null) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::String(left), Value::String(right)) => left == right,
            (Value::Int(_) | Value::Double(_), Value::Int(_) | Value::Double(_)) => {
                self.compare(other)? == Some(Ordering::Equal)
            }
            (Value::List(left), Value::List(right)) => {
                left.len() == right.len() && all(left.iter().zip(right))?
            }
            (Value::Map(left), Value::Map(right)) => {
                left.keys().eq(right.keys()) && all(left.values().zip(right.values()))?
            }
            (Value::Optional(left), Value::Optional(right)) => match (left, right) {
                (Some(left), Some(right)) => left.equals(right)?,
                (left, right) => left.is_none() && right.is_none(),
            },
            _ => false,
        })
    }

    /// Compares two values. Returns `None` if one of them is NaN.
    pub(super) fn compare(&self, other: &Value) -> Result<Option<Ordering>, Stop> {
        match (self, other) {
            (Value::Bool(left), Value::Bool(right)) => Ok(Some(left.cmp(right))),
            (Value::Int(left), Value::Int(right)) => Ok(Some(left.cmp(right))),
            (Value::Double(left), Value::Double(right)) => Ok(left.partial_cmp(right)),
            (Value::Int(left), Value::Double(right)) => exact(*left).map(|left| left.partial_cmp(right)),
            (Value::Double(left), Value::Int(right)) => exact(*right).map(|right| left.partial_cmp(&right)),
            // CEL compares strings by bytes, like Rust.
            (Value::String(left), Value::String(right)) => Ok(Some(left.cmp(right))),
            _ => Err(Stop::Unknown),
        }
    }
}

/// Converts an integer to a float, unless that would round it.
fn exact(number: i64) -> Result<f64, Stop> {
    let is_exact = number.unsigned_abs() <= 1 << 53;
    is_exact.then_some(number as f64).ok_or(Stop::Unknown)
}

fn all<'v>(pairs: impl Iterator<Item = (&'v Value, &'v Value)>) -> Result<bool, Stop> {
    for (left, right) in pairs {
        if !left.equals(right)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads an integer. A number written as `3.0` is not modelled.
fn whole(number: &serde_json::Number) -> Value {
    number.as_i64().map_or(Value::Unmodelled, Value::Int)
}

fn list(items: &[Json], schema: &Schema) -> Value {
    let Some(inner) = &schema.items else {
        return Value::Unmodelled;
    };
    let items = items.iter().map(|item| Value::read(item, inner)).collect();
    match schema.list_type {
        None | Some(ListType::Atomic) => Value::List(items),
        Some(ListType::Set | ListType::Map) => Value::Unordered(items),
    }
}

/// Converts an object. Rules only see fields that are in the schema.
fn object(fields: &serde_json::Map<String, Json>, schema: &Schema) -> Value {
    let read = fields.iter().filter_map(|(name, value)| {
        let property = schema.properties.get(name.as_str())?;
        Some((cel_name(name)?, Value::read(value, property)))
    });
    Value::Map(read.collect())
}
