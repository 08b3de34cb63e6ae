//! From protobuf to JSON.

use serde_json::{Map, Value};

use crate::base64::print_base64;
use crate::special::Special;
use crate::table::{Field, Kind, Shape, Table, table};
use crate::wire::{Piece, Reader};
use crate::{Error, MAGIC, MAX_DEPTH};

/// How many messages each body may have, and for how many of its bytes there is a further one. Absent
/// messages count as well, because Go prints most of them as empty objects: without a limit, two bytes
/// for each item of a list could become kilobytes.
const MIN_MESSAGES: usize = 10_000;
const BYTES_PER_MESSAGE: usize = 8;

/// Returns the JSON that kube-apiserver prints for the object in a body.
///
/// Unknown fields are skipped. Fields that Go does not omit are there even if the body lacks them:
/// false, 0, an empty string, or null for lists, maps and pointers.
///
/// # Errors
///
/// If the bytes are no message, if the kind is not a built-in one, or if a time or embedded JSON is
/// not printable. Bodies whose messages are more than 60 levels deep, or that are tiny but have more
/// than 10,000 messages, are rejected.
///
/// # Examples
///
/// ```
/// let body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x07\x0a\x05\x0a\x03cfg";
/// let object = rbuilder_protobuf::decode(body)?;
/// assert_eq!(object["kind"], "ConfigMap");
/// assert_eq!(object["metadata"]["name"], "cfg");
/// # Ok::<_, rbuilder_protobuf::Error>(())
/// ```
pub fn decode(body: &[u8]) -> Result<Value, Error> {
    let envelope = Envelope::read(body.strip_prefix(MAGIC).ok_or(Error::NoMagic)?)?;
    let (api_version, kind) = (text(envelope.api_version), text(envelope.kind));
    let Some(message) = table().message_of(&api_version, &kind) else {
        return Err(Error::UnknownKind { api_version, kind });
    };
    let mut decoder = Decoder {
        table: table(),
        messages: MIN_MESSAGES + body.len() / BYTES_PER_MESSAGE,
    };
    let mut object = Map::new();
    decoder.fill(message, &[envelope.raw], &mut object, 0)?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

/// The message around each object: Go's `runtime.Unknown`.
#[derive(Default)]
struct Envelope<'a> {
    api_version: &'a [u8],
    kind: &'a [u8],
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut envelope = Envelope::default();
        let mut reader = Reader(bytes);
        while let Some((number, piece)) = reader.next()? {
            match (number, piece) {
                (1, Piece::Bytes(type_meta)) => envelope.read_type(type_meta)?,
                (2, Piece::Bytes(raw)) => envelope.raw = raw,
                (3 | 4, Piece::Bytes(_)) | (5.., _) => {}
                _ => return Err(Error::new(WRONG_TYPE)),
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &'a [u8]) -> Result<(), Error> {
        let mut reader = Reader(bytes);
        while let Some((number, piece)) = reader.next()? {
            match (number, piece) {
                (1, Piece::Bytes(text)) => self.api_version = text,
                (2, Piece::Bytes(text)) => self.kind = text,
                (3.., _) => {}
                _ => return Err(Error::new(WRONG_TYPE)),
            }
        }
        Ok(())
    }
}

const WRONG_TYPE: &str = "wrong wire type";

struct Decoder<'a> {
    table: &'a Table,
    /// How many further messages the body may have.
    messages: usize,
}

/// What a message has for a field.
enum Slot<'a> {
    Absent,
    Value(Value),
    /// The occurrences of a message, which are merged.
    Message(Vec<&'a [u8]>),
    List(Vec<Value>),
    Map(Map<String, Value>),
}

impl Decoder<'_> {
    /// Decodes the parts of a message into a JSON object.
    fn fill(
        &mut self,
        message: usize,
        parts: &[&[u8]],
        into: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(Error::new("expected at most 60 levels of messages"));
        }
        self.messages = self
            .messages
            .checked_sub(1)
            .ok_or_else(|| Error::new("too many messages for so few bytes"))?;
        let table = self.table;
        let fields = table.fields(message);
        let mut slots: Vec<Slot<'_>> = fields.iter().map(|_| Slot::Absent).collect();
        for part in parts {
            let mut reader = Reader(part);
            while let Some((number, piece)) = reader.next()? {
                if let Ok(at) = fields.binary_search_by_key(&number, |field| field.number) {
                    let stored = self.store(&fields[at], piece, &mut slots[at], depth);
                    stored.map_err(|error| error.inside(fields[at].name))?;
                }
            }
        }
        for (field, slot) in fields.iter().zip(slots) {
            let inserted = self.insert(field, slot, into, depth);
            inserted.map_err(|error| error.inside(field.name))?;
        }
        Ok(())
    }

    fn store<'a>(
        &mut self,
        field: &Field,
        piece: Piece<'a>,
        slot: &mut Slot<'a>,
        depth: usize,
    ) -> Result<(), Error> {
        match (field.shape, piece) {
            (Shape::List, Piece::Bytes(packed))
                if matches!(field.kind, Kind::Bool | Kind::Int32 | Kind::Int64) =>
            {
                let mut reader = Reader(packed);
                while !reader.0.is_empty() {
                    let number = Piece::Varint(reader.varint()?);
                    push(slot, self.value(field.kind, number, depth)?);
                }
            }
            (Shape::List, piece) => push(slot, self.value(field.kind, piece, depth)?),
            (Shape::Map, Piece::Bytes(entry)) => {
                let (key, value) = self.entry(field.kind, entry, depth)?;
                if let Slot::Map(map) = slot {
                    map.insert(key, value);
                } else {
                    *slot = Slot::Map(Map::from_iter([(key, value)]));
                }
            }
            (Shape::Map, _) => return Err(Error::new(WRONG_TYPE)),
            (_, Piece::Bytes(part)) if matches!(field.kind, Kind::Message(_) | Kind::Special(..)) => {
                match slot {
                    Slot::Message(parts) => parts.push(part),
                    _ => *slot = Slot::Message(vec![part]),
                }
            }
            (_, piece) => *slot = Slot::Value(self.value(field.kind, piece, depth)?),
        }
        Ok(())
    }

    fn value(&mut self, kind: Kind, piece: Piece<'_>, depth: usize) -> Result<Value, Error> {
        Ok(match (kind, piece) {
            (Kind::Bool, Piece::Varint(number)) => (number != 0).into(),
            // Go cuts off the upper bits.
            (Kind::Int32, Piece::Varint(number)) => (number as i32).into(),
            (Kind::Int64, Piece::Varint(number)) => (number as i64).into(),
            (Kind::Double, Piece::Fixed64(bits)) => print_double(f64::from_bits(bits))?,
            (Kind::String, Piece::Bytes(bytes)) => text(bytes).into(),
            (Kind::Bytes, Piece::Bytes(bytes)) => print_base64(bytes).into(),
            (Kind::Raw, Piece::Bytes([])) => Value::Null,
            (Kind::Raw, Piece::Bytes(bytes)) => {
                serde_json::from_slice(bytes).map_err(|_| Error::new("expected JSON"))?
            }
            (Kind::Message(_) | Kind::Special(..), Piece::Bytes(bytes)) => {
                self.message(kind, &[bytes], depth)?
            }
            _ => return Err(Error::new(WRONG_TYPE)),
        })
    }

    fn message(&mut self, kind: Kind, parts: &[&[u8]], depth: usize) -> Result<Value, Error> {
        let mut fields = Map::new();
        match kind {
            Kind::Message(message) => {
                self.fill(message, parts, &mut fields, depth + 1)?;
                Ok(Value::Object(fields))
            }
            Kind::Special(special @ (Special::Time | Special::MicroTime), message) => {
                // Go does not merge times, and calls a time without bytes the zero.
                let Some(part) = parts.last().filter(|part| !part.is_empty()) else {
                    return Ok(Value::Null);
                };
                self.fill(message, &[part], &mut fields, depth + 1)?;
                special.json_of(fields).map_err(Error::new)
            }
            Kind::Special(special, message) => {
                self.fill(message, parts, &mut fields, depth + 1)?;
                special.json_of(fields).map_err(Error::new)
            }
            _ => Ok(zero(kind)),
        }
    }

    /// Decodes an entry of a map: a message with the key and the value.
    fn entry(&mut self, kind: Kind, bytes: &[u8], depth: usize) -> Result<(String, Value), Error> {
        let (mut key, mut value) = (String::new(), None);
        let mut reader = Reader(bytes);
        while let Some((number, piece)) = reader.next()? {
            match (number, piece) {
                (1, Piece::Bytes(bytes)) => key = text(bytes),
                (1, _) => return Err(Error::new(WRONG_TYPE)),
                (2, piece) => value = Some(self.value(kind, piece, depth)?),
                _ => {}
            }
        }
        let value = match value {
            Some(value) => value,
            None => self.message(kind, &[], depth)?,
        };
        Ok((key, value))
    }

    /// Inserts the JSON of a field, unless Go omits it.
    fn insert(
        &mut self,
        field: &Field,
        slot: Slot<'_>,
        into: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Error> {
        if let (true, Kind::Message(message)) = (field.is_inline, field.kind) {
            let parts = match slot {
                Slot::Message(parts) => parts,
                _ => Vec::new(),
            };
            return self.fill(message, &parts, into, depth + 1);
        }
        let value = match slot {
            Slot::Value(value) => Some(value),
            Slot::List(items) => Some(Value::Array(items)),
            Slot::Map(map) => Some(Value::Object(map)),
            Slot::Message(parts) => Some(self.message(field.kind, &parts, depth)?),
            Slot::Absent => match (field.shape, field.kind) {
                (Shape::Single, Kind::Bytes | Kind::Special(Special::Strings, _)) => None,
                (Shape::Single, kind) => Some(self.message(kind, &[], depth)?),
                _ => None,
            },
        };
        let is_omitted = match &value {
            None | Some(Value::Null) if field.omits_zero => true,
            None => field.omits_empty,
            Some(value) => field.omits_empty && field.shape != Shape::Pointer && is_empty(value),
        };
        if !is_omitted {
            into.insert(field.name.to_owned(), value.unwrap_or_default());
        }
        Ok(())
    }
}

fn push(slot: &mut Slot<'_>, value: Value) {
    match slot {
        Slot::List(items) => items.push(value),
        _ => *slot = Slot::List(vec![value]),
    }
}

fn zero(kind: Kind) -> Value {
    match kind {
        Kind::Bool => false.into(),
        Kind::Int32 | Kind::Int64 | Kind::Double => 0.into(),
        Kind::String | Kind::Bytes => "".into(),
        Kind::Raw | Kind::Message(_) | Kind::Special(..) => Value::Null,
    }
}

/// What Go's `omitempty` omits. Objects are maps here: the table does not omit structs.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Prints whole numbers without a fraction, like Go.
fn print_double(number: f64) -> Result<Value, Error> {
    const EXACT: f64 = (1u64 << 53) as f64;
    if number.fract() == 0.0 && number.abs() < EXACT {
        return Ok((number as i64).into());
    }
    let number = serde_json::Number::from_f64(number);
    number
        .map(Value::Number)
        .ok_or_else(|| Error::new("expected a finite number"))
}

/// Converts a string. Like in Go, each byte that is not UTF-8 becomes U+FFFD.
fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}
