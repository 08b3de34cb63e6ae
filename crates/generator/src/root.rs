//! The schema of an entire object, with spec, status and the fields that every object has.

use std::sync::Arc;

use rbuilder_schema::{
    KEYS, Key, Schema, SchemaType, keep_unmarked_object_meta, shorten_descriptions, unite_rules,
};
use rbuilder_syntax::CustomResource;

use crate::Options;

/// The descriptions of `apiVersion` and `kind`. The line breaks are controller-gen's.
const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object.
Servers should convert recognized schemas to the latest internal value, and
may reject unrecognized values.
More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents.
Servers may infer this from the endpoint the client submits requests to.
Cannot be updated.
In CamelCase.
More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

pub(crate) fn root_schema(
    resource: &CustomResource,
    spec: &Arc<Schema>,
    status: Option<Arc<Schema>>,
) -> Schema {
    let mut root = match resource.no_spec {
        true => Schema::clone(spec),
        false => Schema {
            schema_type: Some(SchemaType::Object),
            ..Schema::default()
        },
    };
    root.description = match &resource.doc {
        Some(doc) => Some(doc.as_str().into()),
        None => spec.description.clone(),
    };
    add_object_fields(&mut root);
    if !resource.no_spec {
        root.properties.insert("spec".into(), Arc::clone(spec));
        if !resource.optional_spec {
            root.required.insert("spec".into());
        }
    }
    if let Some(status) = status {
        root.properties.insert("status".into(), status);
    }
    add_stated_keys(resource, root)
}

/// Returns the schema of an object embedded in another type.
pub(crate) fn embedded_schema(
    resource: &CustomResource,
    spec: &Arc<Schema>,
    status: Option<Arc<Schema>>,
) -> Schema {
    let mut schema = root_schema(resource, spec, status);
    // The API server does not set `metadata` of an embedded object, but serde requires it.
    schema.required.insert("metadata".into());
    schema
}

/// Merges the keys of `root_schema`. Properties, required fields and rules are added to existing
/// ones; other keys are replaced.
fn merge_keys(mut root: Schema, keys: &Schema) -> Schema {
    let fields = keys.properties.iter();
    root.properties
        .extend(fields.map(|(name, field)| (Arc::clone(name), Arc::clone(field))));
    root.required.extend(keys.required.iter().cloned());
    root.validations.extend(keys.validations.iter().cloned());
    let is_added = |key: &Key| matches!(key.name, "properties" | "required" | "x-kubernetes-validations");
    for key in KEYS.iter().filter(|key| key.is_in_root_schema()) {
        if !is_added(key) && key.is_set(keys) {
            key.copy(keys, &mut root);
        }
    }
    root.description.take_if(|text| text.is_empty());
    root
}

pub(crate) fn complete_root(resource: &CustomResource, mut root: Schema) -> Schema {
    if let Some(doc) = &resource.doc {
        root.description = Some(doc.as_str().into());
    }
    add_object_fields(&mut root);
    add_stated_keys(resource, root)
}

/// Adds the rules and `root_schema` from a kind's attributes.
fn add_stated_keys(resource: &CustomResource, mut root: Schema) -> Schema {
    root.validations.extend(resource.validations.iter().cloned());
    let mut root = match &resource.root_schema {
        Some(keys) => merge_keys(root, keys),
        None => root,
    };
    unite_rules(&mut root.validations);
    root
}

fn add_object_fields(root: &mut Schema) {
    let text = |description: &str| Schema {
        description: Some(description.into()),
        schema_type: Some(SchemaType::String),
        ..Schema::default()
    };
    let metadata = Schema {
        schema_type: Some(SchemaType::Object),
        ..Schema::default()
    };
    for (name, schema) in [
        ("apiVersion", text(API_VERSION)),
        ("kind", text(KIND)),
        ("metadata", metadata),
    ] {
        root.properties
            .entry(name.into())
            .or_insert_with(|| schema.into());
    }
}

pub(crate) fn apply_options(root: &mut Schema, options: &Options) {
    if options.embedded_object_meta {
        // The API server knows the schema of the object's own metadata.
        let own = root.properties.get("metadata").cloned();
        keep_unmarked_object_meta(root);
        if let Some(own) = own {
            root.properties.insert("metadata".into(), own);
        }
    }
    if let Some(most) = options.max_description_length {
        shorten_descriptions(root, most);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn value_of(key: &str) -> Value {
        match key {
            "allOf" | "anyOf" | "oneOf" => json!([{ "required": ["spec"] }]),
            "not" => json!({ "required": ["spec"] }),
            "description" | "title" => json!("A"),
            "example" => json!({ "spec": {} }),
            "externalDocs" => json!({ "url": "https://example.com" }),
            "maxProperties" | "minProperties" => json!(5),
            "properties" => json!({ "a": { "type": "string" } }),
            "required" => json!(["a"]),
            "type" => json!("object"),
            "x-kubernetes-map-type" => json!("atomic"),
            "x-kubernetes-preserve-unknown-fields" => json!(true),
            "x-kubernetes-validations" => json!([{ "rule": "true" }]),
            other => panic!("no value for {other}"),
        }
    }

    #[test]
    fn every_key_is_merged() {
        for key in Key::names(Key::is_in_root_schema) {
            let keys = json!({ key: value_of(key) });
            let keys: Schema = serde_json::from_value(keys).unwrap();
            let root = Schema {
                schema_type: Some(SchemaType::Object),
                ..Schema::default()
            };
            let merged = serde_json::to_value(merge_keys(root, &keys)).unwrap();
            assert_eq!(merged[key], value_of(key));
        }
    }
}
