//! Converts objects between a kind's versions. All conversions go through the hub version.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt::Display;

use rbuilder_kubernetes::gvk;
use serde::Serialize;
use serde_json::Value;

use super::as_written::keep_as_written;
use crate::object::{FieldError, Object, decode_value};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Unconvertible {
    /// The object does not match the Rust type of its version.
    #[error("{0}")]
    Undecodable(FieldError),
    /// The version is unknown, or the conversion failed.
    #[error("{0}")]
    Failed(String),
}

impl From<String> for Unconvertible {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

struct Spoke<K> {
    to_hub: ToHub<K>,
    from_hub: Box<dyn Fn(K) -> Result<Value, String> + Send + Sync>,
    serialize: SerializeAgain,
}

/// Also returns the object as serialized by its own type.
type ToHub<K> = Box<dyn Fn(&Value) -> Result<(K, Value), Unconvertible> + Send + Sync>;

type SerializeAgain = Box<dyn Fn(&Value) -> Result<Value, String> + Send + Sync>;

pub(crate) struct Converter<K> {
    spokes: BTreeMap<String, Spoke<K>>,
    /// Configuration errors, which the manager reports at startup.
    errors: Vec<String>,
}

impl<K: Object + Serialize> Converter<K> {
    pub(crate) fn new() -> Self {
        let hub = Spoke {
            to_hub: Box::new(|object| {
                let object = decode::<K>(object)?;
                let serialized = encode(&object)?;
                Ok((object, serialized))
            }),
            from_hub: Box::new(|object| encode(&object)),
            serialize: Box::new(serialize::<K>),
        };
        Self {
            spokes: BTreeMap::from([(K::api_version(&()).into_owned(), hub)]),
            errors: Vec::new(),
        }
    }

    pub(crate) fn add<V>(&mut self)
    where
        V: Object + Serialize,
        K: TryFrom<V, Error: Display>,
        V: TryFrom<K, Error: Display>,
    {
        let version = V::api_version(&()).into_owned();
        if (V::group(&()), V::kind(&())) != (K::group(&()), K::kind(&())) {
            self.errors.push(format!(
                "`{}` of `{version}` is not a version of `{}` of `{}`",
                V::kind(&()),
                K::kind(&()),
                K::api_version(&())
            ));
        }
        let spoke = Spoke {
            to_hub: Box::new(|object| {
                let object = decode::<V>(object)?;
                let serialized = encode(&object)?;
                let hub = K::try_from(object).map_err(|error| error.to_string())?;
                Ok((hub, serialized))
            }),
            from_hub: Box::new(|hub| encode(&V::try_from(hub).map_err(|error| error.to_string())?)),
            serialize: Box::new(serialize::<V>),
        };
        // Adding the hub as a spoke is harmless.
        if self.spokes.insert(version.clone(), spoke).is_some() && TypeId::of::<V>() != TypeId::of::<K>() {
            self.errors
                .push(format!("`{}` of `{version}` is added twice", V::kind(&())));
        }
    }
}

fn decode<V: Object>(object: &Value) -> Result<V, Unconvertible> {
    decode_value(object).map_err(Unconvertible::Undecodable)
}

fn serialize<V: Object + Serialize>(object: &Value) -> Result<Value, String> {
    encode(&decode_value::<V>(object).map_err(|error| error.to_string())?)
}

fn encode<V: Object + Serialize>(object: &V) -> Result<Value, String> {
    let mut object = serde_json::to_value(object).map_err(|error| error.to_string())?;
    object["apiVersion"] = V::api_version(&()).into();
    object["kind"] = V::kind(&()).into();
    Ok(object)
}

/// Trait object for converters of different kinds.
pub(crate) trait AnyConverter: Send + Sync {
    /// Returns group and kind.
    fn kind(&self) -> (String, String);
    fn crd_name(&self) -> String;
    fn errors(&self) -> &[String];
    fn convert(&self, object: &Value, to: &str) -> Result<Value, Unconvertible>;
}

impl<K: Object + Serialize> AnyConverter for Converter<K> {
    fn kind(&self) -> (String, String) {
        (K::group(&()).into_owned(), K::kind(&()).into_owned())
    }

    fn crd_name(&self) -> String {
        gvk::qualify(&K::plural(&()), &K::group(&()))
    }

    fn errors(&self) -> &[String] {
        &self.errors
    }

    fn convert(&self, object: &Value, to: &str) -> Result<Value, Unconvertible> {
        let from = object["apiVersion"].as_str().unwrap_or_default();
        if from == to {
            return Ok(object.clone());
        }
        let spoke = |version: &str| {
            self.spokes.get(version).ok_or_else(|| {
                let known: Vec<&str> = self.spokes.keys().map(String::as_str).collect();
                format!(
                    "unknown version `{version}`, expected one of {}",
                    known.join(", ")
                )
            })
        };
        let (source, target) = (spoke(from)?, spoke(to)?);
        let (hub, serialized) = (source.to_hub)(object)?;
        let converted = (target.from_hub)(hub)?;
        let mut converted = keep_as_written(converted, object, &serialized, &target.serialize);
        keep_metadata(object, &mut converted);
        Ok(converted)
    }
}

/// Restores all metadata except for labels and annotations, since the API server rejects
/// conversions that change anything else.
fn keep_metadata(object: &Value, converted: &mut Value) {
    let mut metadata = object["metadata"].clone();
    let returned = converted["metadata"].take();
    // A conversion that copies the metadata includes the UID. Only then does a missing label mean
    // that it was removed.
    let is_copied = !returned["uid"].is_null() && returned["uid"] == metadata["uid"];
    for key in ["labels", "annotations"] {
        match (&returned[key], is_copied) {
            (Value::Null, false) => {}
            (Value::Null, true) => {
                if let Some(metadata) = metadata.as_object_mut() {
                    metadata.remove(key);
                }
            }
            (returned, true) => metadata[key] = returned.clone(),
            (returned, false) => {
                for (name, value) in returned.as_object().into_iter().flatten() {
                    metadata[key][name] = value.clone();
                }
            }
        }
    }
    converted["metadata"] = metadata;
}
