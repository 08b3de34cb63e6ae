//! Validates objects of built-in Kubernetes kinds against the catalogue.
//!
//! The API server checks these kinds in code, of which the catalogue only covers a part: fields,
//! types, required fields and a few enumerations. Its other keywords are ignored, because the API
//! server doesn't apply them as in CRDs. For example, it accepts the same port twice in a list of
//! type `map`, and `null` and empty strings in place of absent values.

use std::sync::Arc;

use rbuilder_generator::{BuiltinKind, Catalogue, Minor};
use rbuilder_judge::{Definition, Judge, read_schema};
use rbuilder_schema::{Schema, SchemaType, is_quantity};
use serde_json::{Value, json};

const VERSIONS: &[&str] = &[
    "v2", "v1", "v2beta2", "v2beta1", "v1beta3", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2", "v1alpha1",
];

/// Fields of `ObjectMeta` in object templates, which the catalogue leaves out.
pub(super) fn object_meta() -> Schema {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "object", "additionalProperties": text });
    let any = json!({ "x-kubernetes-preserve-unknown-fields": true });
    let number = json!({ "type": "integer" });
    let schema = read_schema(&json!({
        "type": "object",
        "properties": {
            "annotations": texts, "labels": texts,
            "name": text, "generateName": text, "namespace": text, "uid": text, "resourceVersion": text,
            "selfLink": text, "creationTimestamp": text, "deletionTimestamp": text,
            "deletionGracePeriodSeconds": number, "generation": number,
            "finalizers": { "type": "array", "items": text },
            "managedFields": any, "ownerReferences": any,
        },
    }));
    schema.unwrap_or_default()
}

pub(super) struct Builtin {
    catalogue: Catalogue<'static>,
}

impl Builtin {
    pub(super) fn new(minor: Minor) -> Builtin {
        Builtin {
            catalogue: Catalogue::new(minor),
        }
    }

    /// `None` if Kubernetes has no such kind, or if the schema of its objects wouldn't be valid in
    /// a CRD.
    pub(super) fn judge(&self, group: &str, version: &str, kind: &str) -> Option<Judge> {
        let found = find(group, kind)?;
        let schema = self.catalogue.schema(&found.path(version))?;
        let mut schema = simplify(&schema);
        // The API server drops the status of a new object, and decodes the metadata by other rules.
        schema.required.retain(|name| &**name != "status");
        let any = Schema {
            preserve_unknown_fields: true,
            ..Schema::default()
        };
        if let Some(status) = schema.properties.get_mut("status") {
            *status = Arc::new(any);
        }
        let bare = Schema {
            schema_type: Some(SchemaType::Object),
            ..Schema::default()
        };
        schema.properties.insert("metadata".into(), Arc::new(bare));
        Some(Judge::of_builtin(Definition {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            is_namespaced: found.is_namespaced(),
            schema,
            stored_schema: None,
            has_status: true,
            scale: None,
            selectable_fields: Vec::new(),
        }))
    }

    /// Versions of a kind. Empty if it isn't in this minor version of Kubernetes.
    pub(super) fn versions(&self, group: &str, kind: &str) -> Vec<&'static str> {
        let Some(found) = find(group, kind) else {
            return Vec::new();
        };
        let versions = VERSIONS.iter().copied();
        versions
            .filter(|version| self.catalogue.contains(&found.path(version)))
            .collect()
    }

    /// Whether Kubernetes itself owns a group, so that no CRD can add kinds to it.
    pub(super) fn owns(group: &str) -> bool {
        BuiltinKind::all().any(|known| known.group() == group)
    }

    pub(super) fn knows(group: &str, kind: &str) -> bool {
        find(group, kind).is_some()
    }

    pub(super) fn kinds_in(&self, group: &str, version: &str) -> Vec<&'static str> {
        let kinds = BuiltinKind::all().filter(|known| known.group() == group);
        let known = kinds.filter(|known| self.catalogue.contains(&known.path(version)));
        known.map(|known| known.kind()).collect()
    }

    /// Groups other than the core group with this kind and version.
    pub(super) fn groups_with(&self, version: &str, kind: &str) -> Vec<&'static str> {
        let kinds = BuiltinKind::all().filter(|known| known.kind() == kind && !known.group().is_empty());
        let known = kinds.filter(|known| self.catalogue.contains(&known.path(version)));
        known.map(|known| known.group()).collect()
    }
}

fn find(group: &str, kind: &str) -> Option<BuiltinKind> {
    BuiltinKind::all().find(|known| known.group() == group && known.kind() == kind)
}

/// Keeps only what the API server checks as well.
fn simplify(schema: &Schema) -> Schema {
    if is_quantity(schema) {
        return schema.clone();
    }
    let simplified = |inner: &Arc<Schema>| Arc::new(simplify(inner));
    let properties = schema.properties.iter().map(|(name, inner)| {
        let is_metadata = &**name == "metadata" && is_bare(inner);
        let inner = match is_metadata {
            true => Arc::new(object_meta()),
            false => simplified(inner),
        };
        (name.clone(), inner)
    });
    Schema {
        schema_type: schema.schema_type,
        int_or_string: schema.int_or_string,
        format: schema.format.clone().filter(|format| **format == *BYTES),
        nullable: schema.nullable,
        enumeration: schema.enumeration.clone(),
        required: schema.required.clone(),
        properties: properties.collect(),
        items: schema.items.as_ref().map(simplified),
        additional_properties: schema.additional_properties.as_ref().map(simplified),
        // An object without known fields accepts any field.
        preserve_unknown_fields: schema.preserve_unknown_fields || is_bare(schema),
        ..Schema::default()
    }
}

fn is_bare(schema: &Schema) -> bool {
    matches!(schema.schema_type, None | Some(SchemaType::Object))
        && schema.properties.is_empty()
        && schema.additional_properties.is_none()
        && !schema.int_or_string
}

/// The format of bytes, which Go decodes from base64 or from a list of numbers.
const BYTES: &str = "byte";

/// Removes values that Go decodes as absent, i.e. `null`, and the empty string in an enumeration.
/// Replaces `null` in lists by the zero value, as Go does.
pub(super) fn drop_zero_values(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            let inner = |name: &str| {
                let property = schema.properties.get(name);
                property.or(schema.additional_properties.as_ref()).cloned()
            };
            fields.retain(|name, value| {
                let is_enumerated = || inner(name).is_some_and(|inner| !inner.enumeration.is_empty());
                !(value.is_null() || *value == "" && is_enumerated())
            });
            for (name, value) in fields {
                if let Some(inner) = inner(name) {
                    drop_zero_values(value, &inner);
                }
            }
        }
        Value::Array(items) => {
            if schema.format.as_deref() == Some(BYTES) && items.iter().all(Value::is_u64) {
                *value = "".into();
            } else if let Some(inner) = &schema.items {
                for item in items {
                    if item.is_null() {
                        *item = zero_value(inner);
                    }
                    drop_zero_values(item, inner);
                }
            }
        }
        _ => {}
    }
}

fn zero_value(schema: &Schema) -> Value {
    match schema.schema_type {
        _ if is_quantity(schema) => "0".into(),
        _ if schema.int_or_string => 0.into(),
        None => Value::Null,
        Some(SchemaType::Object) => json!({}),
        Some(SchemaType::Array) => json!([]),
        Some(SchemaType::String) => "".into(),
        Some(SchemaType::Integer | SchemaType::Number) => 0.into(),
        Some(SchemaType::Boolean) => false.into(),
    }
}

#[cfg(test)]
mod tests {
    use rbuilder_judge::{Body, FieldValidation};

    use super::*;

    fn check(object: &Value, expected: &[&str]) {
        let builtin = Builtin::new(Minor::LATEST);
        let (group, version) = object["apiVersion"]
            .as_str()
            .and_then(|text| text.split_once('/'))
            .unwrap_or(("", "v1"));
        let kind = object["kind"].as_str().expect("a kind");
        let judge = builtin.judge(group, version, kind).expect("a known kind");
        let mut object = object.clone();
        drop_zero_values(&mut object, &judge.definition().schema);
        let verdict = judge.create(&Body::from(object), "default", FieldValidation::Strict);
        let message = verdict
            .result
            .map_or_else(|failure| failure.message(), |_| String::new());
        assert_eq!(message.is_empty(), expected.is_empty(), "{message}");
        for part in expected {
            assert!(message.contains(part), "{part}\n{message}");
        }
    }

    fn pod(spec: &Value) -> Value {
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" }, "spec": spec })
    }

    #[test]
    fn objects_are_judged_by_the_structure_of_their_kind() {
        check(
            &pod(&json!({ "containers": [{ "name": "a", "image": "b" }] })),
            &[],
        );
        check(
            &pod(&json!({ "containers": [{ "name": "a", "imge": "b" }] })),
            &["unknown field \"spec.containers[0].imge\""],
        );
        check(
            &pod(
                &json!({ "containers": [{ "name": "a", "image": "b", "ports": [{ "containerPort": "80" }] }] }),
            ),
            &["spec.containers[0].ports[0].containerPort: Invalid value: \"string\""],
        );
        check(&pod(&json!({})), &["spec.containers: Required value"]);
    }

    #[test]
    fn values_that_go_decodes_as_absent_are_accepted() {
        check(
            &pod(&json!({
                "containers": [{
                    "name": "a", "image": "b", "imagePullPolicy": "", "args": null,
                    "resources": { "limits": { "cpu": 1, "memory": "1Gi" } },
                    "env": [{ "name": "A", "value": "1" }, { "name": "A", "value": "2" }],
                }],
                "volumes": [{ "name": "b", "emptyDir": {} }],
            })),
            &[],
        );
    }

    #[test]
    fn numbers_are_quantities() {
        let limits = |cpu: Value| {
            pod(
                &json!({ "containers": [{ "name": "a", "image": "b", "resources": { "limits": { "cpu": cpu } } }] }),
            )
        };
        check(&limits(json!(0.5)), &[]);
        check(&limits(json!(2)), &[]);
        check(&limits(json!("0.5x")), &["limits.cpu"]);
        check(
            &json!({
                "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "a" },
                "spec": { "hard": { "cpu": 1.5 } },
            }),
            &[],
        );
    }

    #[test]
    fn null_in_a_list_is_the_zero_value() {
        check(
            &pod(&json!({ "containers": [{ "name": "a", "image": "b", "args": [null], "env": [] }] })),
            &[],
        );
        check(
            &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "a" },
                "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get", null] }],
            }),
            &[],
        );
        check(
            &json!({
                "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": { "name": "a" },
                "spec": { "podSelector": {}, "ingress": [null] },
            }),
            &[],
        );
        check(
            &json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" },
                "data": { "k": [], "l": "aGk=", "m": null },
            }),
            &[],
        );
    }

    #[test]
    fn metadata_of_templates_is_judged() {
        let deployment = |metadata: Value| {
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a", "creationTimestamp": null },
                "spec": {
                    "selector": { "matchLabels": { "app": "a" } },
                    "template": { "metadata": metadata, "spec": { "containers": [{ "name": "a", "image": "b" }] } },
                },
                "status": {},
            })
        };
        check(
            &deployment(json!({ "labels": { "app": "a" }, "creationTimestamp": null })),
            &[],
        );
        check(
            &deployment(json!({ "annotations": { "scrape": true } })),
            &["spec.template.metadata.annotations.scrape: Invalid value: \"boolean\""],
        );
    }

    #[test]
    fn names_of_roles_may_have_colons() {
        check(
            &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": { "name": "shop:reader" },
                "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }],
            }),
            &[],
        );
    }

    #[test]
    fn versions_are_those_of_the_minor() {
        let builtin = Builtin::new(Minor::LATEST);
        assert_eq!(
            builtin.versions("autoscaling", "HorizontalPodAutoscaler"),
            ["v2", "v1"]
        );
        assert_eq!(builtin.versions("policy", "PodSecurityPolicy"), [""; 0]);
        assert!(builtin.judge("apps", "v1beta1", "Deployment").is_none());
    }
}
