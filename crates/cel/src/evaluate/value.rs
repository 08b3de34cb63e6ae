//! CEL values at run time.

use std::rc::Rc;

use rbuilder_kubernetes::quantity::Quantity;
use serde_json::Value as Json;

use super::json::{JsonList, JsonMap};
use super::library::cidr::Cidr;
use super::library::format::NamedFormat;
use super::library::ip::Ip;
use super::library::semver::Semver;
use super::library::time::Timestamp;
use super::library::url::Url;
use super::{Outcome, Stop};

/// A CEL value. Cheap to clone, since it borrows from the object and its schema.
#[derive(Clone, Debug)]
pub(super) enum Value<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Rc<str>),
    Bytes(Rc<[u8]>),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    /// Result of `type(x)`.
    Type(&'static str),
    List(List<'v>),
    Map(Map<'v>),
    Optional(Option<Rc<Value<'v>>>),
    Url(Rc<Url>),
    Quantity(Rc<Quantity>),
    Ip(Ip),
    Cidr(Cidr),
    Semver(Rc<Semver>),
    Format(&'static NamedFormat),
    /// A value without a schema. Rules can only compare it.
    Preserved(&'v Json),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ListKind<'v> {
    Atomic,
    Set,
    /// Contains the names of the key fields.
    Map(&'v [String]),
}

#[derive(Clone, Debug)]
pub(super) enum List<'v> {
    Json(JsonList<'v>),
    Made(Rc<Vec<Value<'v>>>),
    /// The sum of two lists whose first one is a set or map, and so is the result.
    Merged(Rc<Vec<Value<'v>>>, ListKind<'v>),
}

#[derive(Clone, Debug)]
pub(super) enum Map<'v> {
    Json(JsonMap<'v>),
    /// Entries in insertion order.
    Made(Rc<Vec<(Value<'v>, Value<'v>)>>),
}

impl<'v> Value<'v> {
    pub(super) fn string(text: impl Into<Rc<str>>) -> Value<'v> {
        Value::String(text.into())
    }

    pub(super) fn list(items: Vec<Value<'v>>) -> Value<'v> {
        Value::List(List::Made(Rc::new(items)))
    }

    pub(super) fn strings(items: impl IntoIterator<Item = impl Into<Rc<str>>>) -> Value<'v> {
        Value::list(items.into_iter().map(Value::string).collect())
    }

    pub(super) fn some(value: Value<'v>) -> Value<'v> {
        Value::Optional(Some(Rc::new(value)))
    }

    pub(super) fn has_order(&self) -> bool {
        matches!(
            self,
            Value::Bool(_)
                | Value::Int(_)
                | Value::Uint(_)
                | Value::Double(_)
                | Value::String(_)
                | Value::Bytes(_)
                | Value::Duration(_)
                | Value::Timestamp(_)
        )
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Type(_) => "type",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Optional(_) => "optional_type",
            Value::Url(_) => "kubernetes.URL",
            Value::Quantity(_) => "kubernetes.Quantity",
            Value::Ip(_) => "net.IP",
            Value::Cidr(_) => "net.CIDR",
            Value::Semver(_) => "kubernetes.Semver",
            Value::Format(_) => "kubernetes.NamedFormat",
            Value::Preserved(_) => "unknown",
        }
    }

    /// Returns the size that determines the cost of a call.
    pub(super) fn size(&self) -> u64 {
        match self {
            Value::String(text) => text.chars().count() as u64,
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::List(list) => list.len() as u64,
            Value::Map(map) => map.len() as u64,
            Value::Optional(Some(value)) => value.size(),
            Value::Ip(ip) => ip.size(),
            Value::Cidr(cidr) => cidr.size(),
            _ => 1,
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        match self {
            Value::Null => true,
            Value::Bool(value) => !value,
            Value::Int(value) => *value == 0,
            Value::Uint(value) => *value == 0,
            Value::Double(value) => *value == 0.0,
            Value::String(text) => text.is_empty(),
            Value::Bytes(bytes) => bytes.is_empty(),
            Value::Duration(value) => *value == 0,
            Value::Timestamp(time) => time.is_zero(),
            // It's unknown whether the API server treats the object's lists and maps as zero
            // values.
            Value::List(List::Made(items)) => items.is_empty(),
            Value::Map(Map::Made(entries)) => entries.is_empty(),
            _ => false,
        }
    }
}

impl<'v> List<'v> {
    pub(super) fn len(&self) -> usize {
        match self {
            List::Json(list) => list.items.len(),
            List::Made(items) | List::Merged(items, _) => items.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<Outcome<'v>> {
        match self {
            List::Json(list) => list.get(index),
            List::Made(items) | List::Merged(items, _) => items.get(index).cloned().map(Ok),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Outcome<'v>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    pub(super) fn to_vec(&self) -> Result<Vec<Value<'v>>, Stop> {
        self.iter().collect()
    }

    pub(super) fn kind(&self) -> ListKind<'v> {
        match self {
            List::Json(list) => list.kind(),
            List::Made(_) => ListKind::Atomic,
            List::Merged(_, kind) => *kind,
        }
    }
}

impl<'v> Map<'v> {
    pub(super) fn len(&self) -> usize {
        match self {
            Map::Json(map) => map.fields.len(),
            Map::Made(entries) => entries.len(),
        }
    }

    pub(super) fn find(&self, key: &Value<'v>) -> Result<Option<Value<'v>>, Stop> {
        match self {
            Map::Json(map) => match key {
                Value::String(key) => map.find(key).transpose(),
                _ => Err(Stop::no_overload()),
            },
            Map::Made(entries) if entries.is_empty() => Ok(None),
            Map::Made(_) if matches!(key, Value::Bytes(_)) => Err(UNHASHABLE),
            Map::Made(entries) => Ok(find_entry(entries, key).map(|(_, value)| value.clone())),
        }
    }

    /// Returns the keys. The API server visits them in random order.
    pub(super) fn keys(&self) -> Vec<Value<'v>> {
        match self {
            Map::Json(map) => map.keys().map(Value::string).collect(),
            Map::Made(entries) => entries.iter().map(|(key, _)| key.clone()).collect(),
        }
    }
}

/// The API server panics when looking up bytes in a map created by the expression.
pub(super) const UNHASHABLE: Stop = Stop::Unsupported("a key of type bytes");

/// Finds an entry in a map created by the expression. `1`, `1u` and `1.0` are the same key.
pub(super) fn find_entry<'e, 'v>(
    entries: &'e [(Value<'v>, Value<'v>)],
    key: &Value<'v>,
) -> Option<&'e (Value<'v>, Value<'v>)> {
    entries.iter().find(|(known, _)| is_same_key(known, key))
}

pub(super) fn is_same_key(one: &Value<'_>, other: &Value<'_>) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => one == other,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Double(one), Value::Double(other)) => one == other,
        _ => match (whole(one), whole(other)) {
            (Some(one), Some(other)) => one == other,
            _ => false,
        },
    }
}

fn whole(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::Uint(number) => Some(i128::from(*number)),
        // Beyond 2^64, no int or uint can be equal.
        Value::Double(number) if number.fract() == 0.0 && number.abs() < 2e19 => Some(*number as i128),
        _ => None,
    }
}
