//! The representation of objects in responses: in the requested version, full or metadata-only.

use std::borrow::Cow;
use std::sync::Arc;

use hyper::body::Bytes;
use serde_json::{Value, json};

use super::failure::Failure;
use super::http_messages::to_json;
use super::kinds::{Definition, Version};
use super::store::{Key, State};
use super::versions::{Selected, Versions};
use super::webhooks::Reviews;

#[derive(Clone, Debug)]
pub(super) struct View {
    definition: Arc<Definition>,
    version: Version,
    api_version: String,
    metadata_only: bool,
}

impl View {
    pub(super) fn new(definition: Arc<Definition>, version: &Version, accept: &str) -> Self {
        Self {
            api_version: definition.api_version(&version.name),
            metadata_only: accept.contains("as=PartialObjectMetadata"),
            version: version.clone(),
            definition,
        }
    }

    /// Returns true if the kind is still served in this form.
    pub(super) fn is_served(&self, state: &State) -> bool {
        let served = state.kind(&self.definition.id);
        served.is_some_and(|served| Arc::ptr_eq(served, &self.definition))
    }

    pub(super) fn object(&self, stored: &Value, reviews: &Reviews) -> Result<Value, Failure> {
        Ok(self.show(&*self.versions(reviews).read(stored, &self.version)?))
    }

    pub(super) fn text(
        &self,
        state: &State,
        stored: &Arc<Value>,
        reviews: &Reviews,
    ) -> Result<Bytes, Failure> {
        let read = self.versions(reviews).read(stored, &self.version)?;
        // `text_of` caches by stored object, so don't pass it a converted one.
        let is_converted = matches!(read, Cow::Owned(_)) || stored["apiVersion"] != *self.api_version;
        Ok(match (is_converted, self.metadata_only) {
            (false, false) => state.text_of(stored, false, || to_json(stored)),
            (false, true) => state.text_of(stored, true, || to_json(&self.show(stored))),
            (true, _) => to_json(&self.show(&read)),
        })
    }

    pub(super) fn versions<'a>(&'a self, reviews: &'a Reviews) -> Versions<'a> {
        Versions {
            definition: &self.definition,
            reviews,
        }
    }

    pub(super) fn version(&self) -> &Version {
        &self.version
    }

    pub(super) fn show(&self, object: &Value) -> Value {
        if self.metadata_only {
            return json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"],
            });
        }
        let mut shown = object.clone();
        shown["apiVersion"] = self.api_version.clone().into();
        shown
    }

    pub(super) fn list(&self, items: &[(Key, Selected)], metadata: &Value) -> Value {
        let items = items.iter().map(|(_, item)| self.show(&item.read));
        if self.metadata_only {
            let mut metadata = metadata.clone();
            // The server applies shard selectors to metadata-only lists, but doesn't report them.
            metadata.as_object_mut().map(|fields| fields.remove("shardInfo"));
            return json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                "items": items.collect::<Vec<_>>(),
            });
        }
        let item = |mut shown: Value| {
            // Go omits both for items of built-in lists, because their type implies them.
            if let Some(fields) = shown.as_object_mut().filter(|_| !self.definition.custom) {
                fields.remove("apiVersion");
                fields.remove("kind");
            }
            shown
        };
        json!({
            "kind": self.definition.list_kind, "apiVersion": self.api_version, "metadata": metadata,
            "items": items.map(item).collect::<Vec<_>>(),
        })
    }

    pub(super) fn bookmark(&self, kind: &str, version: u64, ends_initial_events: bool) -> Value {
        let (kind, api_version) = if self.metadata_only {
            ("PartialObjectMetadata", "meta.k8s.io/v1")
        } else {
            (kind, self.api_version.as_str())
        };
        let mut metadata = json!({ "resourceVersion": version.to_string(), "creationTimestamp": null });
        if ends_initial_events {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        json!({ "kind": kind, "apiVersion": api_version, "metadata": metadata })
    }
}
