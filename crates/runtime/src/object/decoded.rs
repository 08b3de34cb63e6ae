//! Decodes objects one by one, so that an undecodable object does not break its entire list or
//! watch.
//!
//! kube decodes an entire page of a list (or an entire event) at once. If a newer version of the
//! operator requires a field that's missing from a single stored object, it could not read any
//! objects of that kind. [`Decoded`] extracts the JSON of each object first and decodes it
//! separately, so an error only affects that object.

use std::fmt;

use kube::Resource;
use kube::core::{ObjectMeta, PartialObjectMeta};
use serde::de::value::MapDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Trimmed;

/// In bytes. Causes may quote arbitrarily long values.
const MAX_CAUSE: usize = 300;

/// An object that could not be decoded into its Rust type. Contains its metadata and the reason.
///
/// The `Display` implementation formats the reason, e.g.
/// `.spec.every: invalid value: string "5 minutes", expected …`.
#[derive(Clone, Debug)]
pub struct Undecodable {
    metadata: ObjectMeta,
    field: String,
    cause: String,
}

impl Undecodable {
    /// Returns the metadata of the object. Some of it may be missing, since caches do not keep all
    /// of it.
    pub fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// Returns the path of the field that couldn't be decoded, e.g. `.spec.every`. For a missing
    /// field, this is the path of the object that lacks it.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns the cause (e.g. ``missing field `size` ``). It may quote the field's value, except
    /// for Secrets.
    pub fn cause(&self) -> &str {
        &self.cause
    }

    /// Returns `true` if both objects have the same error in the same field.
    pub(crate) fn has_reason_of(&self, other: &Self) -> bool {
        (&self.field, &self.cause) == (&other.field, &other.cause)
    }

    pub(crate) fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    /// Removes the cause, which may quote a confidential value.
    pub(crate) fn redact(&mut self) {
        "the value does not match the Rust type".clone_into(&mut self.cause);
    }
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.cause)
    }
}

/// An object from a list or a watch, decoded separately.
#[derive(Clone, Debug)]
pub(crate) enum Decoded<O> {
    Object {
        object: O,
        /// Length of the JSON in bytes.
        bytes: usize,
    },
    // Boxed, because it's rare and larger than many objects.
    Undecodable(Box<Undecodable>),
}

impl<O> Decoded<Trimmed<O>> {
    pub(crate) fn into_inner(self) -> Decoded<O> {
        match self {
            Self::Object {
                object: Trimmed(object),
                bytes,
            } => Decoded::Object { object, bytes },
            Self::Undecodable(object) => Decoded::Undecodable(object),
        }
    }
}

impl<'de, O: DeserializeOwned> Deserialize<'de> for Decoded<O> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(RawOrBuffered(deserializer))?;
        Ok(Self::of_text(text.get()))
    }
}

impl<O: DeserializeOwned> Decoded<O> {
    pub(super) fn of_text(text: &str) -> Self {
        match serde_json::from_str(text) {
            Ok(object) => Self::Object {
                object,
                bytes: text.len(),
            },
            Err(_) => Self::Undecodable(Box::new(explain_failure::<O>(text))),
        }
    }
}

/// A field that does not match the Rust type. Formatted as `.spec.every: invalid value: …`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{field}: {cause}")]
pub(crate) struct FieldError {
    /// E.g. `.spec.every`. For a missing field, this is the path of the object that lacks it.
    pub(crate) field: String,
    /// What was found, and what was expected.
    pub(crate) cause: String,
}

/// Decodes an object from JSON. The error names the field that can't be decoded.
pub(crate) fn decode_value<O: DeserializeOwned>(value: &serde_json::Value) -> Result<O, FieldError> {
    O::deserialize(value).or_else(|_| {
        // Decode again to find the path, since tracking it is too slow to do every time.
        let decoded = serde_path_to_error::deserialize(value);
        decoded.map_err(|error| FieldError {
            field: describe_path(error.path()),
            cause: describe_cause(error.inner()),
        })
    })
}

/// Decodes an object once more to find the path of the error, since tracking the path is too slow
/// to do every time.
fn explain_failure<O: DeserializeOwned>(text: &str) -> Undecodable {
    let mut reader = serde_json::Deserializer::from_str(text);
    let (field, cause) = match serde_path_to_error::deserialize::<_, O>(&mut reader) {
        Err(error) => (describe_path(error.path()), describe_cause(error.inner())),
        Ok(_) => (".".to_owned(), "decoded differently the second time".to_owned()),
    };
    Undecodable {
        metadata: read_metadata(text),
        field,
        cause,
    }
}

/// Kubernetes writes paths with a leading dot.
fn describe_path(path: &serde_path_to_error::Path) -> String {
    match path.to_string() {
        path if path == "?" || path == "." => ".".to_owned(),
        path if path.starts_with('[') => path,
        path => format!(".{path}"),
    }
}

fn describe_cause(error: &serde_json::Error) -> String {
    let mut cause = error.to_string();
    // Positions are useless without the input.
    if let Some(position) = cause.rfind(" at line ") {
        cause.truncate(position);
    }
    if cause.len() > MAX_CAUSE {
        let end = (0..=MAX_CAUSE).rev().find(|end| cause.is_char_boundary(*end));
        cause.truncate(end.unwrap_or_default());
        cause.push('…');
    }
    cause
}

/// Decodes the metadata of an object. If that fails as well, only returns what identifies the
/// object.
pub(super) fn read_metadata(text: &str) -> ObjectMeta {
    if let Ok(Trimmed(object)) = serde_json::from_str::<Trimmed<PartialObjectMeta>>(text) {
        return object.metadata;
    }
    let object: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let string = |name: &str| object["metadata"][name].as_str().map(str::to_owned);
    ObjectMeta {
        name: string("name"),
        namespace: string("namespace"),
        uid: string("uid"),
        resource_version: string("resourceVersion"),
        ..ObjectMeta::default()
    }
}

impl<O: Resource> Resource for Decoded<O> {
    forward_resource!(O);

    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Object { object, .. } => object.meta(),
            Self::Undecodable(object) => object.metadata(),
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Object { object, .. } => object.meta_mut(),
            Self::Undecodable(object) => object.meta_mut(),
        }
    }
}

/// Deserializes a [`RawValue`], even if serde has buffered the value. Normally, this only works if
/// the [`RawValue`] is read directly from serde_json.
///
/// serde buffers an event whose `object` precedes its `type`. kube-apiserver sends the `type`
/// first, but other servers (and tests) may sort the keys.
pub(super) struct RawOrBuffered<T>(pub(super) T);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for RawOrBuffered<D> {
    type Error = D::Error;

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_newtype_struct(name, RawVisitor { name, visitor })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// A [`RawValue`] requests the raw text with a magic `name`.
struct RawVisitor<V> {
    name: &'static str,
    visitor: V,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for RawVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(map)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, buffered: D) -> Result<V::Value, D::Error> {
        // serde has already parsed the value, so serialize it again. Then present it like
        // serde_json does, as a map whose only key is the magic name.
        let value = serde_json::Value::deserialize(buffered)?;
        let entry = std::iter::once((self.name, value.to_string()));
        self.visitor.visit_map(MapDeserializer::new(entry))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::core::{ObjectList, WatchEvent};

    use super::*;

    const BAD: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad","namespace":"a",
        "resourceVersion":"7","managedFields":[{"manager":"x"}]},"data":{"key":5}}"#;

    type Text = Decoded<Trimmed<ConfigMap>>;

    fn undecodable(decoded: Text) -> Undecodable {
        match decoded {
            Decoded::Undecodable(object) => *object,
            Decoded::Object { object, .. } => panic!("decoded {object:?}"),
        }
    }

    #[test]
    fn undecodable_object_keeps_metadata_and_reason() {
        let object = undecodable(serde_json::from_str(BAD).unwrap());
        assert_eq!(
            object.to_string(),
            ".data.key: invalid type: integer `5`, expected a string"
        );
        let meta = object.metadata();
        assert_eq!(meta.name.as_deref(), Some("bad"));
        assert_eq!(meta.resource_version.as_deref(), Some("7"));
        assert_eq!(meta.managed_fields, None);
    }

    #[test]
    fn undecodable_object_does_not_affect_the_rest_of_its_list() {
        let list = format!(
            r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[
                {{"metadata":{{"name":"first"}}}},{BAD},{{"metadata":{{"name":"last"}},"data":{{"a":"b"}}}}]}}"#
        );
        let list: ObjectList<Text> = serde_json::from_str(&list).unwrap();
        let decoded: Vec<_> = list
            .items
            .iter()
            .map(|item| {
                (
                    item.meta().name.as_deref(),
                    matches!(item, Decoded::Object { .. }),
                )
            })
            .collect();
        assert_eq!(
            decoded,
            [(Some("first"), true), (Some("bad"), false), (Some("last"), true)]
        );
    }

    #[test]
    fn key_order_of_events_does_not_matter() {
        for event in [
            format!(r#"{{"type":"ADDED","object":{BAD}}}"#),
            format!(r#"{{"object":{BAD},"type":"ADDED"}}"#),
        ] {
            let WatchEvent::Added(decoded) = serde_json::from_str::<WatchEvent<Text>>(&event).unwrap() else {
                panic!("expected an ADDED event");
            };
            assert_eq!(undecodable(decoded).field(), ".data.key");
        }
    }

    #[test]
    fn undecodable_metadata_still_identifies_the_object() {
        let bad =
            r#"{"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"3","labels":{"x":1}}}"#;
        let object = undecodable(serde_json::from_str(bad).unwrap());
        assert_eq!(object.field(), ".metadata.labels.x");
        let meta = object.metadata();
        assert_eq!(
            (
                meta.name.as_deref(),
                meta.namespace.as_deref(),
                meta.uid.as_deref()
            ),
            (Some("a"), Some("b"), Some("u"))
        );
        assert_eq!(undecodable(serde_json::from_str("[1]").unwrap()).field(), ".");
    }

    #[test]
    fn long_cause_is_truncated() {
        let bad = format!(r#"{{"metadata":{{"name":"a"}},"data":"{}"}}"#, "ü".repeat(1000));
        let object = undecodable(serde_json::from_str(&bad).unwrap());
        assert!(object.cause().len() < 310, "{object}");
        assert!(object.cause().ends_with('…'), "{object}");
    }
}
