//! Writes of objects, and the answers of kube-apiserver.
//!
//! The test of the library that records the answers includes this file too.

pub(crate) mod record;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) const GROUP: &str = "judge.example.com";
pub(crate) const NAMESPACE: &str = "default";

/// A kind and the writes of its objects.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Kind {
    /// Makes the names of kinds unique.
    #[serde(default)]
    pub(crate) number: usize,
    /// The schema of the objects.
    pub(crate) schema: Value,
    /// The schema of the version in which objects are stored, if it isn't the written one.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) stored: Value,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) cluster: bool,
    /// Whether `status` is a subresource.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) status: bool,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) scale: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) selectable: Vec<String>,
}

/// A write.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Write {
    /// `create`, `strict`, `ignored`, `body`, `update`, `status` or `scale`.
    pub(crate) how: String,
    /// The object before the write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<Value>,
    /// The sent object; for `body` its text, for `scale` the number of replicas.
    pub(crate) new: Value,
}

fn is_false(value: &bool) -> bool {
    !*value
}

impl Kind {
    /// Returns the CRD. `v1` has the schema. Objects are also written as `v0`, which accepts
    /// everything, so that objects can be stored that `v1` refuses; they are stored as `v1`, or as `v2` if
    /// that has a schema of its own.
    pub(crate) fn crd(&self) -> Value {
        let mut subresources = json!({});
        if self.status {
            subresources["status"] = json!({});
        }
        if !self.scale.is_null() {
            subresources["scale"] = self.scale.clone();
        }
        let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let selectable: Vec<Value> = self
            .selectable
            .iter()
            .map(|path| json!({ "jsonPath": path }))
            .collect();
        let plural = format!("t{}s", self.number);
        let mut versions = vec![
            json!({ "name": "v0", "served": true, "storage": false, "schema": { "openAPIV3Schema": open } }),
            json!({
                "name": "v1", "served": true, "storage": self.stored.is_null(), "subresources": subresources,
                "selectableFields": selectable, "schema": { "openAPIV3Schema": self.schema },
            }),
        ];
        if !self.stored.is_null() {
            versions.push(json!({
                "name": "v2", "served": true, "storage": true, "schema": { "openAPIV3Schema": self.stored },
            }));
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.{GROUP}") },
            "spec": {
                "group": GROUP, "scope": if self.cluster { "Cluster" } else { "Namespaced" },
                "names": { "kind": format!("T{}", self.number), "plural": plural },
                "versions": versions,
            },
        })
    }
}

/// Adds the stanza that the tables omit.
pub(crate) fn complete(object: &Value, number: usize, name: &str, version: &str) -> Value {
    let mut object = object.clone();
    let Value::Object(fields) = &mut object else {
        return object;
    };
    fields
        .entry("apiVersion")
        .or_insert_with(|| format!("{GROUP}/{version}").into());
    fields
        .entry("kind")
        .or_insert_with(|| format!("T{number}").into());
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata
        && !metadata.contains_key("generateName")
    {
        metadata.entry("name").or_insert_with(|| name.into());
    }
    object
}

/// Returns the text of a write of the kind `body`.
pub(crate) fn complete_text(text: &str, number: usize, name: &str) -> String {
    let stanza = format!(r#""apiVersion":"{GROUP}/v1","kind":"T{number}","metadata":{{"name":"{name}"}}"#);
    text.replace("$STANZA", &stanza)
}

/// The name of the object of a write, unless the table sets one.
pub(crate) fn name_of(write: usize) -> String {
    format!("o{write}")
}

/// Removes from an object what the server sets at random, and what [`complete`] adds.
pub(crate) fn bare(object: &Value, name: &str) -> Value {
    let mut object = object.clone();
    let Value::Object(fields) = &mut object else {
        return object;
    };
    fields.remove("apiVersion");
    fields.remove("kind");
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        for name in [
            "uid",
            "creationTimestamp",
            "managedFields",
            "resourceVersion",
            "selfLink",
        ] {
            metadata.remove(name);
        }
        if metadata.get("name").is_some_and(|found| found == name) || metadata.contains_key("generateName") {
            metadata.remove("name");
        }
        if metadata.get("namespace").is_some_and(|found| found == NAMESPACE) {
            metadata.remove("namespace");
        }
    }
    object
}
