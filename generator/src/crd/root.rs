//! The schema of a whole object: what every Kubernetes object has, with spec and status in it.

use std::sync::Arc;

use rbuilder_schema::{Schema, SchemaType, keep_object_meta, shorten_descriptions};
use rbuilder_syntax::CustomResource;

use crate::Options;

/// The API conventions' texts for the two fields that every object has, line for line as controller-gen has them.
const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object.
Servers should convert recognized schemas to the latest internal value, and
may reject unrecognized values.
More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents.
Servers may infer this from the endpoint the client submits requests to.
Cannot be updated.
In CamelCase.
More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// The schema of the object from those of its parts.
pub(super) fn root_schema(
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
        root.required.insert("spec".into());
    }
    if let Some(status) = status {
        root.properties.insert("status".into(), status);
    }
    root.validations.extend(resource.validations.iter().cloned());
    root
}

/// The schema of the object from one that the program gives for the whole of it.
pub(super) fn complete_root(resource: &CustomResource, mut root: Schema) -> Schema {
    if let Some(doc) = &resource.doc {
        root.description = Some(doc.as_str().into());
    }
    add_object_fields(&mut root);
    root.validations.extend(resource.validations.iter().cloned());
    root
}

/// Adds the fields that every object has, where they are not there.
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

/// Applies the options that concern the schema of every kind.
pub(super) fn apply_options(root: &mut Schema, options: &Options) {
    if options.embedded_object_meta {
        // Of the root's own metadata the API server knows the schema.
        let own = root.properties.get("metadata").cloned();
        keep_object_meta(root);
        if let Some(own) = own {
            root.properties.insert("metadata".into(), own);
        }
    }
    if let Some(most) = options.max_description_length {
        shorten_descriptions(root, most);
    }
}
