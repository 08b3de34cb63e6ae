//! Definitions of served kinds: names, versions, schemas and subresources.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use rbuilder_catalogue::Catalogue;
use rbuilder_judge::Judge;
use rbuilder_kubernetes::crd::Crd;
use rbuilder_kubernetes::gvk;
use rbuilder_schema::{Schema, SchemaType};
use serde_json::{Value, json};

use super::webhooks::ConversionHook;

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

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => f.write_str(&self.plural),
            group => write!(f, "{}.{group}", self.plural),
        }
    }
}

/// The names of a kind that is served without a CRD.
#[derive(Clone, Debug)]
pub struct KindNames {
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version, such as `v1`.
    pub version: String,
    /// The kind, such as `Widget`.
    pub kind: String,
    /// The plural name, such as `widgets`.
    pub plural: String,
    /// Whether the kind is namespaced.
    pub is_namespaced: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) id: ResourceId,
    pub(super) kind: String,
    pub(super) list_kind: String,
    pub(super) singular: String,
    pub(super) short_names: Vec<String>,
    /// Groups of kinds in kubectl, e.g. `all`.
    pub(super) categories: Vec<String>,
    pub(super) namespaced: bool,
    pub(super) custom: bool,
    pub(super) counts_generation: bool,
    /// Whether objects get a response without being stored, e.g. `SubjectAccessReview`.
    pub(super) review: bool,
    pub(super) storage: String,
    /// The webhook that converts between versions. `None` if only `apiVersion` changes.
    pub(super) conversion: Option<Arc<ConversionHook>>,
    pub(super) versions: Vec<Version>,
    /// Resource version at which the kind's current definition was installed. Objects written
    /// earlier may lack fields and defaults of the current CRD.
    pub(super) since: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) name: String,
    pub(super) served: bool,
    pub(super) source: Arc<Source>,
    pub(super) status: bool,
    pub(super) scale: Option<Scale>,
    /// Fields supported by field selectors, e.g. `spec.nodeName`.
    pub(super) selectable: Vec<String>,
}

/// JSON pointers to the fields of the `scale` subresource.
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
    /// Definition without a schema, so all fields are preserved and none are validated.
    pub(super) fn without_schema(names: &KindNames) -> Self {
        let KindNames {
            group,
            version,
            kind,
            plural,
            is_namespaced,
        } = names;
        let version = Version {
            name: version.clone(),
            served: true,
            source: Arc::new(Source::judged(rbuilder_judge::Definition {
                group: group.clone(),
                version: version.clone(),
                kind: kind.clone(),
                is_namespaced: *is_namespaced,
                schema: Schema {
                    preserve_unknown_fields: true,
                    ..Schema::default()
                },
                stored_schema: None,
                has_status: true,
                scale: None,
                selectable_fields: Vec::new(),
            })),
            status: true,
            scale: None,
            selectable: Vec::new(),
        };
        Self {
            id: ResourceId::new(&**group, &**plural),
            list_kind: format!("{kind}List"),
            singular: kind.to_lowercase(),
            kind: kind.clone(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: *is_namespaced,
            custom: true,
            counts_generation: true,
            review: false,
            storage: version.name.clone(),
            conversion: None,
            versions: vec![version],
            since: 0,
        }
    }

    pub(super) fn of_crd(crd: &Value) -> Result<Self, String> {
        let view = Crd::of(crd);
        let name = |field: &str| view.names()[field].as_str().filter(|name| !name.is_empty());
        let kind = view.kind();
        let mut stored = view.versions().filter(|version| version.is_storage);
        let (Some(storage), None) = (stored.next(), stored.next()) else {
            return Err("must have exactly one version marked as storage version".to_owned());
        };
        let id = ResourceId::new(view.group(), view.plural());
        let texts = |field: &str| {
            let texts = view.names()[field].as_array().into_iter().flatten();
            texts.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Ok(Self {
            conversion: ConversionHook::of_crd(crd, &id).map(Arc::new),
            id,
            kind: kind.to_owned(),
            list_kind: name("listKind").map_or_else(|| format!("{kind}List"), str::to_owned),
            singular: name("singular").map_or_else(|| kind.to_lowercase(), str::to_owned),
            short_names: texts("shortNames"),
            categories: texts("categories"),
            namespaced: view.scope() == "Namespaced",
            custom: true,
            counts_generation: true,
            review: false,
            storage: storage.name.to_owned(),
            versions: view
                .versions()
                .map(|version| {
                    let definition = rbuilder_judge::Definition::of_version(view, version)?;
                    Ok(Version::of_crd(version.is_served, definition))
                })
                .collect::<Result<_, String>>()?,
            since: 0,
        })
    }

    pub(super) fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == self.storage)
    }

    /// Finds a version by `apiVersion`, even if it is no longer served.
    pub(super) fn version_of(&self, api_version: &str) -> Option<&Version> {
        let mut versions = self.versions.iter();
        versions.find(|version| self.api_version(&version.name) == api_version)
    }

    /// Decodes a stored object with the current definition of its version. The CRD may have changed
    /// since the object was written, and the server never rewrites stored objects on its own.
    pub(super) fn decode_stored<'a>(&self, stored: &'a Value) -> Cow<'a, Value> {
        let resource_version = string_at(stored, "/metadata/resourceVersion").parse::<u64>();
        let is_current = resource_version.is_ok_and(|at| at > self.since);
        if !self.custom || is_current {
            return Cow::Borrowed(stored);
        }
        let version = self.version_of(string_at(stored, "/apiVersion"));
        match version.and_then(Version::judge) {
            Some(judge) => Cow::Owned(judge.read(stored)),
            None => Cow::Borrowed(stored),
        }
    }

    pub(super) fn version(&self, name: &str) -> Option<&Version> {
        self.versions
            .iter()
            .find(|version| version.name == name && version.served)
    }

    pub(super) fn api_version(&self, version: &str) -> String {
        gvk::api_version(&self.id.group, version)
    }
}

fn pointer(path: &str) -> String {
    path.replace('.', "/")
}

pub(super) enum Source {
    /// A custom resource. Its rules are compiled lazily on the first write, because that's slow.
    Judged {
        definition: Box<rbuilder_judge::Definition>,
        judge: OnceLock<Box<Judge>>,
        schema: OnceLock<Schema>,
    },
    /// A built-in kind. Its schema is decoded lazily on first use; decoding all of them for every
    /// server would be slow.
    Catalogue {
        catalogue: Arc<Catalogue<'static>>,
        path: String,
        made: OnceLock<Schema>,
    },
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Judged { definition, .. } => definition.fmt(f),
            Self::Catalogue { path, .. } => f.write_str(path),
        }
    }
}

impl Source {
    fn judged(definition: rbuilder_judge::Definition) -> Self {
        Self::Judged {
            definition: Box::new(definition),
            judge: OnceLock::new(),
            schema: OnceLock::new(),
        }
    }
}

impl Version {
    fn of_crd(served: bool, definition: rbuilder_judge::Definition) -> Self {
        let fields = definition.selectable_fields.iter();
        Self {
            name: definition.version.clone(),
            served,
            status: definition.has_status,
            scale: definition.scale.as_ref().map(|scale| Scale {
                replicas: pointer(&scale.spec_replicas),
                observed: pointer(&scale.status_replicas),
                selector: scale.label_selector.as_deref().map(pointer),
            }),
            selectable: fields
                .map(|field| field.trim_start_matches('.').to_owned())
                .collect(),
            source: Arc::new(Source::judged(definition)),
        }
    }

    pub(super) fn is_custom(&self) -> bool {
        matches!(&*self.source, Source::Judged { .. })
    }

    pub(super) fn judge(&self) -> Option<&Judge> {
        match &*self.source {
            Source::Judged {
                definition, judge, ..
            } => Some(
                judge.get_or_init(|| Box::new(Judge::new(rbuilder_judge::Definition::clone(definition)))),
            ),
            Source::Catalogue { .. } => None,
        }
    }

    /// The schema with descriptions. The catalogue has those of built-in kinds.
    pub(super) fn described_schema(&self, catalogue: &Catalogue<'_>) -> Value {
        let built_in;
        let schema = match &*self.source {
            Source::Judged { .. } => self.schema(),
            Source::Catalogue { path, .. } => {
                let found = catalogue.schema(path);
                built_in = with_metadata(found.map(|schema| with_inner_metadata(&schema)));
                &built_in
            }
        };
        serde_json::to_value(schema).unwrap_or_default()
    }

    pub(super) fn schema(&self) -> &Schema {
        match &*self.source {
            Source::Judged {
                definition, schema, ..
            } => schema.get_or_init(|| with_metadata(Some(definition.schema.clone()))),
            Source::Catalogue {
                catalogue,
                path,
                made,
            } => made.get_or_init(|| {
                let found = catalogue.schema(path);
                // All fields are preserved if the catalogue has no schema for the kind.
                with_metadata(found.map(|schema| with_inner_metadata(&schema)))
            }),
        }
    }
}

pub(super) static OPEN: LazyLock<Schema> = LazyLock::new(|| with_metadata(None));

/// Adds `apiVersion`, `kind` and `metadata` to a schema. `None` becomes a schema that preserves all
/// fields.
fn with_metadata(schema: Option<Schema>) -> Schema {
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

/// Fills in the `ObjectMeta` schema for the `metadata` of nested templates (e.g. Pod templates),
/// which the catalogue doesn't contain.
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

/// Returns the string at a JSON pointer, or an empty string. Doesn't support escapes.
pub(super) fn string_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    // Faster than `Value::pointer`, which allocates twice per name for unescaping.
    let mut names = pointer.split('/').skip(1);
    let found = names.try_fold(value, |value, name| value.get(name));
    found.and_then(Value::as_str).unwrap_or_default()
}
