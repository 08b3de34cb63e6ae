//! From JSON to protobuf.

use serde_json::{Map, Value};

use crate::base64::parse_base64;
use crate::special::Special;
use crate::table::{Field, Kind, Shape, table};
use crate::wire::{write_bytes, write_varint};
use crate::{Error, MAGIC, MAX_DEPTH};

/// Returns an object as Go's clients send it, and as kube-apiserver answers when clients ask for
/// protobuf. Fields that the kind lacks are dropped.
///
/// # Errors
///
/// If the kind is not a built-in one, or if a field has a value of another type.
///
/// # Examples
///
/// ```
/// use serde_json::json;
///
/// let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "cfg" } });
/// let body = rbuilder_protobuf::encode(&object)?;
/// assert_eq!(rbuilder_protobuf::decode(&body)?, object);
/// # Ok::<_, rbuilder_protobuf::Error>(())
/// ```
pub fn encode(object: &Value) -> Result<Vec<u8>, Error> {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (Some(message), Value::Object(fields)) = (table().message_of(api_version, kind), object) else {
        return Err(Error::UnknownKind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        });
    };
    let mut raw = Vec::new();
    write_message(message, fields, &mut raw, 0)?;
    let mut type_meta = Vec::new();
    write_bytes(1, api_version.as_bytes(), &mut type_meta);
    write_bytes(2, kind.as_bytes(), &mut type_meta);
    let mut body = MAGIC.to_vec();
    write_bytes(1, &type_meta, &mut body);
    write_bytes(2, &raw, &mut body);
    // The encoding and the content type. Go writes empty strings as well.
    write_bytes(3, b"", &mut body);
    write_bytes(4, b"", &mut body);
    Ok(body)
}

fn write_message(
    message: usize,
    object: &Map<String, Value>,
    out: &mut Vec<u8>,
    depth: usize,
) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::new("expected at most 60 levels of messages"));
    }
    for field in table().fields(message) {
        let written = match (field.is_inline, field.kind) {
            (true, Kind::Message(message)) => {
                let mut bytes = Vec::new();
                let written = write_message(message, object, &mut bytes, depth + 1);
                write_bytes(field.number, &bytes, out);
                written
            }
            _ => write_field(field, object.get(field.name).unwrap_or(&Value::Null), out, depth),
        };
        written.map_err(|error| error.inside(field.name))?;
    }
    Ok(())
}

fn write_field(field: &Field, value: &Value, out: &mut Vec<u8>, depth: usize) -> Result<(), Error> {
    let (number, kind) = (field.number, field.kind);
    match (field.shape, value) {
        (Shape::Single, Value::Null) => write_zero(number, kind, out, depth),
        (Shape::Pointer | Shape::List | Shape::Map, Value::Null) => Ok(()),
        (Shape::Single | Shape::Pointer, value) => write_value(number, kind, value, out, depth),
        (Shape::List, Value::Array(items)) => items.iter().try_for_each(|item| match item {
            Value::Null => write_zero(number, kind, out, depth),
            item => write_value(number, kind, item, out, depth),
        }),
        (Shape::Map, Value::Object(entries)) => write_entries(number, kind, entries, out, depth),
        (Shape::List, _) => Err(Error::new("expected a list")),
        (Shape::Map, _) => Err(Error::new("expected an object")),
    }
}

/// Go writes the entries in the order of their keys.
fn write_entries(
    number: u32,
    kind: Kind,
    entries: &Map<String, Value>,
    out: &mut Vec<u8>,
    depth: usize,
) -> Result<(), Error> {
    let mut keys: Vec<&String> = entries.keys().collect();
    keys.sort_unstable();
    for key in keys {
        let mut entry = Vec::new();
        write_bytes(1, key.as_bytes(), &mut entry);
        match &entries[key] {
            Value::Null => write_zero(2, kind, &mut entry, depth),
            value => write_value(2, kind, value, &mut entry, depth),
        }
        .map_err(|error| error.inside(key))?;
        write_bytes(number, &entry, out);
    }
    Ok(())
}

/// Writes the value of an absent field that is no pointer. Go writes all of them except bytes and
/// lists.
fn write_zero(number: u32, kind: Kind, out: &mut Vec<u8>, depth: usize) -> Result<(), Error> {
    let zero = match kind {
        Kind::Bool => Value::Bool(false),
        Kind::Int32 | Kind::Int64 | Kind::Double => 0.into(),
        Kind::String => "".into(),
        Kind::Bytes | Kind::Raw | Kind::Special(Special::Strings, _) => return Ok(()),
        Kind::Message(_) => Map::new().into(),
        Kind::Special(Special::Quantity, _) => "0".into(),
        Kind::Special(Special::IntOrString, _) => 0.into(),
        Kind::Special(..) => Value::Null,
    };
    write_value(number, kind, &zero, out, depth)
}

fn write_value(number: u32, kind: Kind, value: &Value, out: &mut Vec<u8>, depth: usize) -> Result<(), Error> {
    let mut varint = |value: u64| {
        write_varint(u64::from(number) << 3, out);
        write_varint(value, out);
        Ok(())
    };
    match (kind, value) {
        (Kind::Bool, Value::Bool(value)) => varint(u64::from(*value)),
        (Kind::Bool, _) => Err(Error::new("expected true or false")),
        (Kind::Int32 | Kind::Int64, value) => match value.as_i64() {
            Some(value) if kind == Kind::Int64 || i32::try_from(value).is_ok() => varint(value as u64),
            _ => Err(Error::new("expected an integer that fits")),
        },
        (Kind::Double, value) => {
            let value = value.as_f64().ok_or_else(|| Error::new("expected a number"))?;
            write_varint(u64::from(number) << 3 | 1, out);
            out.extend_from_slice(&value.to_le_bytes());
            Ok(())
        }
        (Kind::String, Value::String(text)) => {
            write_bytes(number, text.as_bytes(), out);
            Ok(())
        }
        (Kind::Bytes, Value::String(text)) => {
            let bytes = parse_base64(text).ok_or_else(|| Error::new("expected base64"))?;
            write_bytes(number, &bytes, out);
            Ok(())
        }
        (Kind::String | Kind::Bytes, _) => Err(Error::new("expected a string")),
        (Kind::Raw, value) => {
            write_bytes(number, value.to_string().as_bytes(), out);
            Ok(())
        }
        (Kind::Message(message), Value::Object(object)) => {
            let mut bytes = Vec::new();
            write_message(message, object, &mut bytes, depth + 1)?;
            write_bytes(number, &bytes, out);
            Ok(())
        }
        (Kind::Message(_), _) => Err(Error::new("expected an object")),
        (Kind::Special(special, message), value) => {
            let fields = special.fields_of(value).map_err(Error::new)?;
            let mut bytes = Vec::new();
            // Times without fields are the zero of Go, which has no bytes.
            if !fields.is_empty() {
                write_message(message, &fields, &mut bytes, depth + 1)?;
            }
            write_bytes(number, &bytes, out);
            Ok(())
        }
    }
}
