//! Definitions of served kinds: names, versions, schemas and subresources.

use std::any::TypeId;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Resource;
use kube::core::NamespaceResourceScope;
use rbuilder_catalogue::KUBERNETES;
use rbuilder_schema::{Schema, SchemaType};
use serde_json::{Value, json};

/// Group and plural of a kind, as used in API paths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ResourceId {
    pub(super) group: String,
    pub(super) plural: String,
}

impl ResourceId {
    pub(super) fn new(group: impl Into<String>, plural: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            plural: plural.into(),
        }
    }

    pub(super) fn namespaces() -> Self {
        Self::new("", "namespaces")
    }

    pub(super) fn crds() -> Self {
        Self::new("apiextensions.k8s.io", "customresourcedefinitions")
    }
}

/// Formats the id as `memos.example.com`, or `configmaps` in the core group.
impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => f.write_str(&self.plural),
            group => write!(f, "{}.{group}", self.plural),
        }
    }
}

/// A served kind.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) id: ResourceId,
    pub(super) kind: String,
    pub(super) list_kind: String,
    pub(super) singular: String,
    pub(super) short_names: Vec<String>,
    pub(super) namespaced: bool,
    /// Whether the kind is from a CRD or a Rust type, as opposed to a built-in kind.
    pub(super) custom: bool,
    pub(super) counts_generation: bool,
    /// Whether objects are answered but not stored, such as `SubjectAccessReview`.
    pub(super) review: bool,
    /// The storage version.
    pub(super) storage: String,
    /// Whether versions are converted by a webhook. The server does not call it.
    pub(super) conversion_webhook: bool,
    pub(super) versions: Vec<Version>,
}

/// A version of a kind.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) name: String,
    pub(super) served: bool,
    pub(super) source: Arc<Source>,
    /// Whether the status is a subresource.
    pub(super) status: bool,
    pub(super) scale: Option<Scale>,
    /// Paths of the fields that field selectors support, such as `spec.nodeName`.
    pub(super) selectable: Vec<String>,
}

/// The field paths of the `scale` subresource, as JSON pointers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    pub(super) replicas: String,
    pub(super) observed: String,
    pub(super) selector: Option<String>,
}

impl Scale {
    pub(super) fn builtin() -> Self {
        Self {
            replicas: "/spec/replicas".to_owned(),
            observed: "/status/replicas".to_owned(),
            selector: Some("/spec/selector".to_owned()),
        }
    }
}

impl Definition {
    /// Creates the definition for a Rust type. It has no schema, so all fields are kept and none is
    /// validated.
    pub(super) fn of_type<K: Resource<DynamicType = (), Scope: 'static>>() -> Self {
        let kind = K::kind(&()).into_owned();
        let version = Version {
            name: K::version(&()).into_owned(),
            served: true,
            source: Arc::new(Source::Given(with_metadata(None))),
            status: true,
            scale: None,
            selectable: Vec::new(),
        };
        Self {
            id: ResourceId::new(K::group(&()), K::plural(&())),
            list_kind: format!("{kind}List"),
            singular: kind.to_lowercase(),
            kind,
            short_names: Vec::new(),
            namespaced: TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>(),
            custom: true,
            counts_generation: true,
            review: false,
            storage: version.name.clone(),
            conversion_webhook: false,
            versions: vec![version],
        }
    }

    /// Creates the definition for a CRD.
    pub(super) fn of_crd(crd: &CustomResourceDefinition) -> Self {
        let (spec, names) = (&crd.spec, &crd.spec.names);
        let storage = spec.versions.iter().find(|version| version.storage);
        let strategy = spec
            .conversion
            .as_ref()
            .map(|conversion| conversion.strategy.as_str());
        Self {
            id: ResourceId::new(&*spec.group, &*names.plural),
            kind: names.kind.clone(),
            list_kind: names
                .list_kind
                .clone()
                .unwrap_or_else(|| format!("{}List", names.kind)),
            singular: names
                .singular
                .clone()
                .unwrap_or_else(|| names.kind.to_lowercase()),
            short_names: names.short_names.clone().unwrap_or_default(),
            namespaced: spec.scope == "Namespaced",
            custom: true,
            counts_generation: true,
            review: false,
            storage: storage.map(|version| version.name.clone()).unwrap_or_default(),
            conversion_webhook: strategy == Some("Webhook"),
            versions: spec.versions.iter().map(version_of_crd).collect(),
        }
    }

    pub(super) fn version(&self, name: &str) -> Option<&Version> {
        self.versions
            .iter()
            .find(|version| version.name == name && version.served)
    }

    /// Returns `group/version`, or only the version for the core group.
    pub(super) fn api_version(&self, version: &str) -> String {
        match self.id.group.as_str() {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        }
    }
}

fn version_of_crd(
    version: &k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionVersion,
) -> Version {
    let subresources = version.subresources.as_ref();
    let scale = subresources
        .and_then(|all| all.scale.as_ref())
        .map(|scale| Scale {
            replicas: pointer(&scale.spec_replicas_path),
            observed: pointer(&scale.status_replicas_path),
            selector: scale.label_selector_path.as_deref().map(pointer),
        });
    let schema = version
        .schema
        .as_ref()
        .and_then(|schema| serde_json::to_value(schema.open_api_v3_schema.as_ref()?).ok());
    let fields = version.selectable_fields.iter().flatten();
    Version {
        name: version.name.clone(),
        served: version.served,
        source: Arc::new(Source::Given(with_metadata(
            schema.and_then(|schema| serde_json::from_value(schema).ok()),
        ))),
        status: subresources.is_some_and(|all| all.status.is_some()),
        scale,
        selectable: fields
            .map(|field| field.json_path.trim_start_matches('.').to_owned())
            .collect(),
    }
}

/// Converts `.spec.replicas` to `/spec/replicas`.
fn pointer(path: &str) -> String {
    path.replace('.', "/")
}

/// The source of the schema of a version.
#[derive(Debug)]
pub(super) enum Source {
    Given(Schema),
    /// From the catalogue. Decoded on first use, because decoding all schemas for every server
    /// would be slow.
    Catalogue {
        path: String,
        made: OnceLock<Schema>,
    },
}

impl Version {
    /// Returns the schema of the whole object, including `metadata`.
    pub(super) fn schema(&self) -> &Schema {
        match &*self.source {
            Source::Given(schema) => schema,
            Source::Catalogue { path, made } => made.get_or_init(|| {
                let found = KUBERNETES.schema(path);
                // If the catalogue has no schema for the kind, all fields are kept.
                with_metadata(found.map(|schema| with_inner_metadata(&schema)))
            }),
        }
    }
}

/// Adds the fields that all objects have to a schema. Without a schema, all other fields are kept.
pub(super) fn with_metadata(schema: Option<Schema>) -> Schema {
    let mut schema = schema.unwrap_or_else(|| Schema {
        preserve_unknown_fields: true,
        ..Schema::default()
    });
    let string = || {
        Arc::new(Schema {
            schema_type: Some(SchemaType::String),
            ..Schema::default()
        })
    };
    schema.schema_type = Some(SchemaType::Object);
    schema.properties.insert("apiVersion".into(), string());
    schema.properties.insert("kind".into(), string());
    schema.properties.insert("metadata".into(), METADATA.clone());
    schema
}

/// Adds the schema of `ObjectMeta` to nested templates, for which the catalogue has no schema.
fn with_inner_metadata(schema: &Schema) -> Schema {
    let within = |name: &str, inner: &Arc<Schema>| {
        if name == "metadata" && inner.properties.is_empty() {
            METADATA.clone()
        } else if mentions_metadata(inner) {
            Arc::new(with_inner_metadata(inner))
        } else {
            inner.clone()
        }
    };
    let properties = schema.properties.iter();
    Schema {
        properties: properties
            .map(|(name, inner)| (name.clone(), within(name, inner)))
            .collect(),
        items: schema.items.as_ref().map(|inner| within("", inner)),
        ..schema.clone()
    }
}

fn mentions_metadata(schema: &Schema) -> bool {
    schema.properties.contains_key("metadata")
        || schema.properties.values().any(|inner| mentions_metadata(inner))
        || schema.items.as_deref().is_some_and(mentions_metadata)
}

/// The schema of `ObjectMeta`.
static METADATA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let texts = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let text = json!({ "type": "string" });
    let schema = json!({ "type": "object", "properties": {
        "annotations": texts, "labels": texts,
        "name": text, "generateName": text, "namespace": text, "uid": text, "resourceVersion": text,
        "creationTimestamp": text, "deletionTimestamp": text, "selfLink": text,
        "generation": { "type": "integer" }, "deletionGracePeriodSeconds": { "type": "integer" },
        "finalizers": { "type": "array", "items": text, "x-kubernetes-list-type": "set" },
        "managedFields": { "type": "array", "items": { "x-kubernetes-preserve-unknown-fields": true } },
        "ownerReferences": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
            "items": {
                "type": "object", "x-kubernetes-map-type": "atomic", "required": ["apiVersion", "kind", "name", "uid"],
                "properties": {
                    "apiVersion": text, "kind": text, "name": text, "uid": text,
                    "controller": { "type": "boolean" }, "blockOwnerDeletion": { "type": "boolean" },
                },
            },
        },
    } });
    serde_json::from_value(schema).unwrap_or_default()
});

/// Returns the string at a JSON pointer, or an empty string.
pub(super) fn string_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
