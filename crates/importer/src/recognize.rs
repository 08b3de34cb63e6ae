//! Recognizes Kubernetes types by their schemas.
//!
//! Field names alone aren't enough: `{key, name, optional}` may select from a Secret as well as
//! from a ConfigMap. So a type is only used if rbuilder generates exactly the same schema for it,
//! including field descriptions. If a single word differs, e.g. because the schema is from an older
//! version of Kubernetes, we generate a struct.

use std::collections::BTreeMap;
use std::sync::Arc;

use rbuilder_catalogue::{Catalogue, Minor};
use rbuilder_schema::{Role, Schema, SchemaType, known};

pub(crate) struct KubernetesTypes {
    by_fields: BTreeMap<Vec<Arc<str>>, Vec<KubernetesType>>,
}

struct KubernetesType {
    path: String,
    schema: Arc<Schema>,
}

impl KubernetesTypes {
    pub(crate) fn new(minor: Minor) -> Self {
        let catalogue = Catalogue::new(minor);
        let mut by_fields: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for path in catalogue.paths() {
            let Some(schema) = catalogue.schema(&path) else {
                continue;
            };
            if !schema.properties.is_empty() {
                by_fields
                    .entry(fields(&schema))
                    .or_default()
                    .push(KubernetesType { path, schema });
            }
        }
        KubernetesTypes { by_fields }
    }

    /// Finds a type with this schema, ignoring the description of the value itself. If there are
    /// several, prefers the one whose name is most similar to the field's.
    pub(crate) fn find(&self, schema: &Schema, field: &str) -> Option<(&str, Arc<Schema>)> {
        let candidates = self.by_fields.get(&fields(schema))?;
        let wanted = without_field_keys(schema);
        let equal = candidates
            .iter()
            .filter(|candidate| without_field_keys(&candidate.schema) == wanted);
        let field = field.to_ascii_lowercase();
        let likeness = |path: &str| {
            let name = path.rsplit("::").next().unwrap_or_default().to_ascii_lowercase();
            let is_core = path.contains("::core::v1::") || path.contains("::meta::v1::");
            (shared_start(&name, &field), is_core)
        };
        let mut best: Option<&KubernetesType> = None;
        for found in equal {
            if best.is_none_or(|best| likeness(&found.path) > likeness(&best.path)) {
                best = Some(found);
            }
        }
        best.map(|best| (best.path.as_str(), Arc::clone(&best.schema)))
    }
}

fn shared_start(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

fn fields(schema: &Schema) -> Vec<Arc<str>> {
    schema.properties.keys().map(Arc::clone).collect()
}

pub(crate) fn without_field_keys(schema: &Schema) -> Schema {
    schema.without(|key| key.role == Role::Words || matches!(key.name, "default" | "nullable"))
}

pub(crate) fn leaf(schema: &Schema) -> &'static str {
    const QUANTITY: &str = "k8s_openapi::apimachinery::pkg::api::resource::Quantity";
    const INT_OR_STRING: &str = "k8s_openapi::apimachinery::pkg::util::intstr::IntOrString";
    const TIME: &str = "k8s_openapi::apimachinery::pkg::apis::meta::v1::Time";
    const RAW: &str = "k8s_openapi::apimachinery::pkg::runtime::RawExtension";
    const OBJECT_META: &str = "k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta";
    let format = schema.format.as_deref();
    match schema.schema_type {
        _ if schema.int_or_string => {
            let is_quantity = known(QUANTITY).is_some_and(|quantity| quantity.pattern == schema.pattern);
            if is_quantity { QUANTITY } else { INT_OR_STRING }
        }
        Some(SchemaType::Boolean) => "bool",
        Some(SchemaType::Integer) if format == Some("int32") => "i32",
        Some(SchemaType::Integer) => "i64",
        Some(SchemaType::Number) if format == Some("float") => "f32",
        Some(SchemaType::Number) => "f64",
        Some(SchemaType::String) if schema.enumeration.is_empty() && format == Some("date-time") => TIME,
        Some(SchemaType::String) => "String",
        Some(SchemaType::Object) if schema.embedded_resource => RAW,
        Some(SchemaType::Object) if schema.preserve_unknown_fields => ANY_OBJECT,
        Some(SchemaType::Object) => OBJECT_META,
        Some(SchemaType::Array) | None => "serde_json::Value",
    }
}

/// Name in the generator for an object of any kind.
pub(crate) const ANY_OBJECT: &str = "serde_json::Map";
