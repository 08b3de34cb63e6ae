//! Decodes the body of a write: duplicate and unknown fields, pruning, `null` and defaulting.

use std::fmt;

use rbuilder_schema::Schema;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::defaults::fill_defaults;
use crate::go;
use crate::object_meta;
use crate::prune;
use crate::verdict::Failure;

/// Maximum size of a request body in bytes.
pub const MOST_BYTES: usize = 3 << 20;

/// Go's JSON decoder stops reporting duplicates after this many.
const MOST_DUPLICATES: usize = 100;

/// How the server handles unknown and duplicate fields (query parameter `fieldValidation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Rejects the write.
    Strict,
    /// Drops the fields with a warning. The server's default.
    #[default]
    Warn,
    /// Drops the fields.
    Ignore,
}

/// The body of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    value: Value,
    duplicates: Vec<String>,
    is_too_large: bool,
}

impl From<Value> for Body {
    /// A body without duplicate fields.
    fn from(mut value: Value) -> Body {
        normalize(&mut value);
        Body {
            value,
            duplicates: Vec::new(),
            is_too_large: false,
        }
    }
}

impl Body {
    /// Parses a JSON body. The last value of a duplicate field wins.
    ///
    /// # Errors
    ///
    /// Returns an error if the text isn't JSON.
    pub fn parse(text: &str) -> Result<Body, serde_json::Error> {
        let mut duplicates = Vec::new();
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let node = Node {
            path: String::new(),
            duplicates: &mut duplicates,
        };
        let value = node.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(Body {
            duplicates,
            is_too_large: text.len() > MOST_BYTES,
            ..Body::from(value)
        })
    }

    /// Creates a body the way kubectl does from YAML: whole floats such as `1.0` become integers.
    pub fn of_yaml(value: &Value) -> Body {
        let value = prune::encode(value);
        let is_too_large = serde_json::to_writer(Limited(MOST_BYTES), &value).is_err();
        Body {
            is_too_large,
            ..Body::from(value)
        }
    }

    /// Adds paths of duplicate fields found by another parser, e.g. `spec.size`.
    pub fn with_duplicates(mut self, paths: impl IntoIterator<Item = String>) -> Body {
        self.duplicates.extend(paths);
        self
    }

    /// The paths of duplicate fields.
    pub fn duplicates(&self) -> &[String] {
        &self.duplicates
    }

    /// Whether the body exceeds [`MOST_BYTES`].
    pub(crate) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// Returns the decoded JSON.
    pub fn value(&self) -> &Value {
        &self.value
    }
}

/// Accepts a number of bytes and fails afterwards.
struct Limited(usize);

impl std::io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let rest = self.0.checked_sub(bytes.len());
        self.0 = rest.ok_or(std::io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// Go decodes everything that isn't a 64-bit integer as a float.
fn normalize(value: &mut Value) {
    match value {
        // Go decodes `-0` as an integer.
        Value::Number(number) if number.is_f64() && number.as_f64().is_some_and(is_negative_zero) => {
            *value = 0.into();
        }
        Value::Number(number) if number.is_u64() && !number.is_i64() => {
            if let Some(float) = number.as_f64().and_then(Number::from_f64) {
                *number = float;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::Object(fields) => fields.values_mut().for_each(normalize),
        _ => {}
    }
}

fn is_negative_zero(number: f64) -> bool {
    number == 0.0 && number.is_sign_negative()
}

/// Deserializes JSON like `Value`, but also records duplicate fields.
struct Node<'d> {
    path: String,
    duplicates: &'d mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number that is not finite"))?;
        Ok(number.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let node = Node {
                path: format!("{}[{}]", self.path, items.len()),
                duplicates: self.duplicates,
            };
            match list.next_element_seed(node)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let path = match self.path.is_empty() {
                true => name.clone(),
                false => format!("{}.{name}", self.path),
            };
            let is_noted = self.duplicates.contains(&path) || self.duplicates.len() >= MOST_DUPLICATES;
            if fields.contains_key(&name) && !is_noted {
                self.duplicates.push(path.clone());
            }
            let node = Node {
                path,
                duplicates: self.duplicates,
            };
            let value = map.next_value_seed(node)?;
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

/// Number of bytes of the body shown in the server's message.
const MOST_SHOWN: usize = 30;

pub(crate) fn check_identity(body: &Body, kind: &str) -> Result<(), Failure> {
    if body.is_too_large {
        return Err(Failure::TooLarge);
    }
    let reason = match &body.value {
        Value::Object(fields)
            if fields
                .get("kind")
                .is_some_and(|kind| *kind != "" && !kind.is_null()) =>
        {
            return Ok(());
        }
        Value::Object(_) => format!("Object 'Kind' is missing in '{}'", body.value),
        other => format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type \
             struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
             Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            object_meta::token(other)
        ),
    };
    let shown = summarize(&body.value.to_string());
    Err(Failure::malformed(format!(
        "the object provided is unrecognized (must be of type {kind}): {reason} ({shown})"
    )))
}

/// Returns the beginning of a body, in hexadecimal unless it's an object.
fn summarize(text: &str) -> String {
    let bytes = &text.as_bytes()[..text.len().min(MOST_SHOWN)];
    let mut shown: String = match text.starts_with('{') {
        true => String::from_utf8_lossy(bytes).into_owned(),
        false => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if text.len() > MOST_SHOWN {
        shown.push_str(" ...");
    }
    shown
}

/// A decoded object.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object, including defaults.
    pub object: Value,
    /// Warnings about its fields.
    pub warnings: Vec<String>,
}

/// Decodes the body of a write, which the server does before admission. `kind` and `version` are
/// used in failures.
pub(crate) fn decode(
    body: &Body,
    schema: &Schema,
    fields: FieldValidation,
    kind: &str,
    version: &str,
) -> Result<Decoded, Failure> {
    let mut object = body.value.clone();
    let describe =
        |reason: &str| format!("{kind} in version {version:?} cannot be handled as a {kind}: {reason}");
    let unknown =
        settle(&mut object, schema, Nulls::Drop).map_err(|reason| Failure::malformed(describe(&reason)))?;
    let duplicates = body
        .duplicates
        .iter()
        .map(|path| format!("duplicate field {}", go::quote(path)));
    let unknown = unknown.iter().map(|path| format!("unknown field \"{path}\""));
    let problems: Vec<String> = duplicates.chain(unknown).collect();
    if fields == FieldValidation::Strict && !problems.is_empty() {
        let message = describe(&format!("strict decoding error: {}", problems.join(", ")));
        return Err(Failure::Malformed { message, problems });
    }
    let warnings = match fields {
        FieldValidation::Warn => problems,
        _ => Vec::new(),
    };
    fill_defaults(&mut object, schema);
    Ok(Decoded { object, warnings })
}

/// Completes an object that was changed by the server itself: decodes its metadata, prunes and
/// defaults it. Keeps `null` values for validation to reject.
pub(crate) fn complete(mut object: Value, schema: &Schema) -> Result<Value, String> {
    normalize(&mut object);
    settle(&mut object, schema, Nulls::Keep)?;
    fill_defaults(&mut object, schema);
    Ok(object)
}

/// How to handle a `null` that isn't allowed and has no default.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Drop,
    Keep,
}

/// Prunes an object and decodes its metadata. Returns the paths of unknown fields.
fn settle(object: &mut Value, schema: &Schema, nulls: Nulls) -> Result<Vec<String>, String> {
    let mut unknown = Vec::new();
    let metadata = match object.get("metadata") {
        Some(metadata) => {
            let decoded = object_meta::decode(metadata)?;
            unknown.extend(decoded.unknown.iter().map(|field| format!("metadata.{field}")));
            Some(decoded.value)
        }
        None => None,
    };
    unknown.extend(prune::prune(object, schema));
    if nulls == Nulls::Drop {
        prune::drop_nulls(object, Some(schema));
    }
    unknown.extend(prune::coerce_embedded(object, schema)?);
    if let (Some(metadata), Some(fields)) = (metadata, object.as_object_mut()) {
        fields.insert("metadata".to_owned(), metadata);
    }
    Ok(unknown)
}

/// Returns a stored object as the server reads it, i.e. with the current schema and defaults.
pub(crate) fn read_stored(object: &Value, schema: &Schema) -> Value {
    let mut stored = convert(object, schema);
    fill_defaults(&mut stored, schema);
    stored
}

/// Drops fields that `schema` doesn't define from an object of another version.
pub(crate) fn convert(object: &Value, schema: &Schema) -> Value {
    let mut converted = Body::from(prune::encode(object)).value;
    // Ignore the error; the server drops undecodable fields.
    let _ = settle(&mut converted, schema, Nulls::Drop);
    converted
}
