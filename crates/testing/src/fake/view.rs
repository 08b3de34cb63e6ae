//! The representation of objects in responses: in the requested version, complete or metadata only.

use serde_json::{Value, json};

use super::kinds::{Definition, Version};

/// The representation requested by a client.
#[derive(Clone, Debug)]
pub(super) struct View {
    api_version: String,
    list_kind: String,
    metadata_only: bool,
    /// True for built-in kinds: the items of their lists omit `apiVersion` and `kind`.
    bare_items: bool,
}

impl View {
    pub(super) fn new(definition: &Definition, version: &Version, accept: &str) -> Self {
        Self {
            api_version: definition.api_version(&version.name),
            list_kind: definition.list_kind.clone(),
            metadata_only: accept.contains("as=PartialObjectMetadata"),
            bare_items: !definition.custom,
        }
    }

    /// Returns the representation of an object.
    pub(super) fn object(&self, object: &Value) -> Value {
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

    /// Returns the representation of a list with this list metadata.
    pub(super) fn list<'a>(&self, items: impl Iterator<Item = &'a Value>, metadata: &Value) -> Value {
        if self.metadata_only {
            return json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                "items": items.map(|item| self.object(item)).collect::<Vec<_>>(),
            });
        }
        let item = |item: &Value| {
            let mut shown = self.object(item);
            if let Some(fields) = shown.as_object_mut().filter(|_| self.bare_items) {
                fields.remove("apiVersion");
                fields.remove("kind");
            }
            shown
        };
        json!({
            "kind": self.list_kind, "apiVersion": self.api_version, "metadata": metadata,
            "items": items.map(item).collect::<Vec<_>>(),
        })
    }

    /// Returns the object in a bookmark event.
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
