//! ConversionReviews: conversion of objects from one version of a kind to another, through the hub.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt::Display;

use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use super::as_written::keep_as_written;
use super::routes::Rejection;
use crate::object::Object;

const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// A step of a conversion, from `A` to `B`.
type Step<A, B> = Box<dyn Fn(A) -> Result<B, String> + Send + Sync>;

/// Converts objects of a spoke to the hub and back.
struct Spoke<K> {
    /// Returns the hub, and the object as its own type serializes it.
    to_hub: Step<Value, (K, Value)>,
    from_hub: Step<K, Value>,
    /// Returns an object as its type serializes it.
    serialize: Step<Value, Value>,
}

/// The hub `K` and its spokes, by API version.
pub(crate) struct Converter<K> {
    spokes: BTreeMap<String, Spoke<K>>,
    /// Configuration errors.
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
            serialize: Box::new(|object| encode(&decode::<K>(object)?)),
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
            serialize: Box::new(|object| encode(&decode::<V>(object)?)),
        };
        if self.spokes.insert(version.clone(), spoke).is_some() && TypeId::of::<V>() != TypeId::of::<K>() {
            self.errors
                .push(format!("`{}` of `{version}` is added twice", V::kind(&())));
        }
    }
}

fn decode<V: Object>(object: Value) -> Result<V, String> {
    serde_json::from_value(object).map_err(|error| error.to_string())
}

fn encode<V: Object + Serialize>(object: &V) -> Result<Value, String> {
    let mut object = serde_json::to_value(object).map_err(|error| error.to_string())?;
    object["apiVersion"] = V::api_version(&()).into();
    object["kind"] = V::kind(&()).into();
    Ok(object)
}

/// A converter with its kind erased.
pub(crate) trait AnyConverter: Send + Sync {
    /// Returns group and kind.
    fn kind(&self) -> (String, String);
    /// Returns the name of the CRD.
    fn crd_name(&self) -> String;
    fn errors(&self) -> &[String];
    fn convert(&self, object: &Value, to: &str) -> Result<Value, String>;
}

impl<K: Object + Serialize> AnyConverter for Converter<K> {
    fn kind(&self) -> (String, String) {
        (K::group(&()).into_owned(), K::kind(&()).into_owned())
    }

    fn crd_name(&self) -> String {
        format!("{}.{}", K::plural(&()), K::group(&()))
    }

    fn errors(&self) -> &[String] {
        &self.errors
    }

    fn convert(&self, object: &Value, to: &str) -> Result<Value, String> {
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
        let (hub, serialized) = (source.to_hub)(object.clone())?;
        let converted = (target.from_hub)(hub)?;
        let mut converted = keep_as_written(converted, object, &serialized, &target.serialize);
        keep_metadata(object, &mut converted);
        Ok(converted)
    }
}

/// Restores the metadata of the original object, except for labels and annotations. The API server rejects a conversion
/// that changes other metadata.
fn keep_metadata(object: &Value, converted: &mut Value) {
    let mut metadata = object["metadata"].clone();
    let returned = converted["metadata"].take();
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

/// Answers a review with the converter of each object's kind. If one object cannot be converted, the whole review fails,
/// as the API server expects.
pub(super) fn answer_review(
    body: &[u8],
    converters: &BTreeMap<(String, String), Box<dyn AnyConverter>>,
) -> Result<Vec<u8>, Rejection> {
    let bad = |reason: String| Rejection::new(StatusCode::BAD_REQUEST, reason);
    let review: Value =
        serde_json::from_slice(body).map_err(|error| bad(format!("invalid JSON: {error}")))?;
    if review["kind"] != "ConversionReview" || review["apiVersion"] != API_VERSION {
        return Err(bad(format!(
            "expected a ConversionReview of {API_VERSION}, found {} of {}",
            review["kind"], review["apiVersion"]
        )));
    }
    let request = &review["request"];
    let (Some(uid), Some(to), Some(objects)) = (
        request["uid"].as_str(),
        request["desiredAPIVersion"].as_str(),
        request["objects"].as_array(),
    ) else {
        return Err(bad("invalid `request` in the ConversionReview".to_owned()));
    };
    let converted: Result<Vec<Value>, String> = objects
        .iter()
        .map(|object| convert(object, to, converters))
        .collect();
    let response = match converted {
        Ok(objects) => {
            json!({ "uid": uid, "result": { "status": "Success" }, "convertedObjects": objects })
        }
        Err(message) => {
            tracing::warn!(error = %message, "conversion failed");
            json!({ "uid": uid, "result": { "status": "Failure", "message": message } })
        }
    };
    let answer = json!({ "apiVersion": API_VERSION, "kind": "ConversionReview", "response": response });
    Ok(serde_json::to_vec(&answer).unwrap_or_default())
}

fn convert(
    object: &Value,
    to: &str,
    converters: &BTreeMap<(String, String), Box<dyn AnyConverter>>,
) -> Result<Value, String> {
    let (version, kind) = (
        object["apiVersion"].as_str().unwrap_or_default(),
        object["kind"].as_str().unwrap_or_default(),
    );
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    let converter = converters.get(&(group.to_owned(), kind.to_owned()));
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let Some(converter) = converter else {
        return Err(format!("no conversion registered for `{kind}` of `{version}`"));
    };
    converter
        .convert(object, to)
        .map_err(|error| format!("failed to convert {kind} {name} from {version} to {to}: {error}"))
}
