//! Converts objects between versions, either with the CRD's webhook or by just changing
//! `apiVersion`.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::failure::Failure;
use super::kinds::{Definition, Version, string_at};
use super::selectors::Selector;
use super::store::Key;
use super::webhooks::Reviews;

#[derive(Clone, Copy)]
pub(super) struct Versions<'a> {
    pub(super) definition: &'a Definition,
    pub(super) reviews: &'a Reviews,
}

impl<'a> Versions<'a> {
    /// Reads a stored object in the given version, with the fields and defaults of the current CRD.
    pub(super) fn read<'o>(self, stored: &'o Value, version: &Version) -> Result<Cow<'o, Value>, Failure> {
        let decoded = self.definition.decode_stored(stored);
        if !self.definition.custom || self.is_in(&decoded, version) {
            return Ok(decoded);
        }
        let at = string_at(stored, "/metadata/resourceVersion");
        match self.convert_stored(&decoded, version) {
            Ok(converted) => Ok(Cow::Owned(converted)),
            Err(failure) if self.reviews.is_pending() => Err(failure),
            Err(failure) => {
                let message = format!("object not decodable revision={at}: {}", failure.message());
                Err(Failure::new(500, "", message))
            }
        }
    }

    /// Like [`read`](Self::read), but fails with the message of a `GET`.
    pub(super) fn get<'o>(self, stored: &'o Value, version: &Version) -> Result<Cow<'o, Value>, Failure> {
        self.read(stored, version).map_err(|failure| {
            // Pending reviews just abort the attempt, so don't wrap the failure.
            if self.reviews.is_pending() || failure.code != 500 {
                return failure;
            }
            let id = &self.definition.id;
            let path = ["/metadata/namespace", "/metadata/name"].map(|pointer| string_at(stored, pointer));
            let path: Vec<&str> = path.into_iter().filter(|part| !part.is_empty()).collect();
            Failure::internal(&format!(
                "StorageError: corrupt object, Code: 7, Key: /{}/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: {}",
                id.group,
                id.plural,
                path.join("/"),
                failure.message()
            ))
        })
    }

    /// Converts an object without its resource version, which isn't part of the stored bytes.
    fn convert_stored(self, object: &Value, version: &Version) -> Result<Value, Failure> {
        let mut bare = object.clone();
        let metadata = bare["metadata"].as_object_mut();
        let resource_version = metadata.and_then(|metadata| metadata.remove("resourceVersion"));
        let mut converted = self.convert(&bare, version)?;
        if let Some(resource_version) = resource_version {
            converted["metadata"]["resourceVersion"] = resource_version;
        }
        Ok(converted)
    }

    /// The object as it would be read in the storage version after being stored.
    pub(super) fn to_stored(self, mut object: Value) -> Result<Value, Failure> {
        let definition = self.definition;
        let storage = definition.storage_version();
        let Some((storage, judge)) = storage.and_then(|storage| Some((storage, storage.judge()?))) else {
            object["apiVersion"] = definition.api_version(&definition.storage).into();
            return Ok(object);
        };
        if self.is_in(&object, storage) {
            return Ok(object);
        }
        Ok(judge.read(&self.convert_stored(&object, storage)?))
    }

    pub(super) fn convert(self, object: &Value, version: &Version) -> Result<Value, Failure> {
        let definition = self.definition;
        if self.is_in(object, version) {
            return Ok(object.clone());
        }
        let wanted = definition.api_version(&version.name);
        let Some(judge) = version.judge() else {
            let mut object = object.clone();
            object["apiVersion"] = wanted.into();
            return Ok(object);
        };
        let Some(webhook) = &definition.conversion else {
            return Ok(judge.convert(object));
        };
        let from = string_at(object, "/apiVersion");
        if definition.version_of(from).is_none() {
            let message = format!("request to convert CR from an invalid group/version: {from}");
            return Err(Failure::new(500, "", message));
        }
        Ok(judge.convert(&webhook.convert(self.reviews, object, &wanted)?))
    }

    pub(super) fn select<'o>(
        self,
        objects: impl IntoIterator<Item = (&'o Key, &'o Arc<Value>)>,
        selector: &Selector,
        version: &Version,
    ) -> Result<Vec<(Key, Selected)>, Failure> {
        let mut selected = Vec::new();
        let mut failed = None;
        for (key, stored) in objects {
            if !selector.matches_key(key) {
                continue;
            }
            match self.read(stored, version) {
                Ok(read) if selector.matches(key, &read) => {
                    let read = match read {
                        Cow::Borrowed(_) => stored.clone(),
                        Cow::Owned(read) => Arc::new(read),
                    };
                    let stored = stored.clone();
                    selected.push((key.clone(), Selected { stored, read }));
                }
                Ok(_) => {}
                // Continue, to request all conversions at once instead of one per attempt.
                Err(failure) if self.reviews.is_pending() => {
                    failed.get_or_insert(failure);
                }
                Err(failure) => return Err(failure),
            }
        }
        failed.map_or(Ok(selected), Err)
    }

    fn is_in(self, object: &Value, version: &Version) -> bool {
        self.definition.api_version(&version.name) == string_at(object, "/apiVersion")
    }
}

#[derive(Clone, Debug)]
pub(super) struct Selected {
    pub(super) stored: Arc<Value>,
    /// In the requested version.
    pub(super) read: Arc<Value>,
}
