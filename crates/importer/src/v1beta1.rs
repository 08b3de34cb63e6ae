//! Converts definitions of `apiextensions.k8s.io/v1beta1`, which kubebuilder 2 generated, to `v1`
//! as the API server does.

use serde_json::{Map, Value, json};

use crate::definition::is_definition;

const OLD: &str = "apiextensions.k8s.io/v1beta1";
const NEW: &str = "apiextensions.k8s.io/v1";

/// Converts a definition from `apiextensions.k8s.io/v1beta1` to `v1`. Returns `None` for anything
/// else.
///
/// In `v1`, some fields are in each version that `v1beta1` had once per definition. A version also
/// needs a schema there, so if it has none, we give it one that accepts any object.
pub fn convert_definition(document: &Value) -> Option<Value> {
    if document["apiVersion"] != OLD || !is_definition(document) {
        return None;
    }
    let mut converted = document.clone();
    converted["apiVersion"] = NEW.into();
    if let Some(spec) = converted.get_mut("spec").and_then(Value::as_object_mut) {
        convert_spec(spec);
    }
    Some(converted)
}

fn convert_spec(spec: &mut Map<String, Value>) {
    let shared = [
        ("schema", spec.remove("validation")),
        ("subresources", spec.remove("subresources")),
        (
            "additionalPrinterColumns",
            spec.remove("additionalPrinterColumns"),
        ),
    ];
    let only = spec.remove("version");
    let has_versions = spec
        .get("versions")
        .and_then(Value::as_array)
        .is_some_and(|versions| !versions.is_empty());
    if let Some(name) = only.filter(|name| name.is_string() && !has_versions) {
        let version = json!({ "name": name, "served": true, "storage": true });
        spec.insert("versions".into(), json!([version]));
    }
    let versions = spec.get_mut("versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten().filter_map(Value::as_object_mut) {
        for (key, value) in &shared {
            let is_absent = version.get(*key).is_none_or(Value::is_null);
            if let Some(value) = value.as_ref().filter(|value| is_absent && !value.is_null()) {
                version.insert((*key).into(), value.clone());
            }
        }
        if version.get("schema").is_none_or(Value::is_null) {
            let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
            version.insert("schema".into(), json!({ "openAPIV3Schema": any }));
        }
        let columns = version.get_mut("additionalPrinterColumns");
        for column in columns.and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(column) = column.as_object_mut()
                && let Some(path) = column.remove("JSONPath")
            {
                column.insert("jsonPath".into(), path);
            }
        }
    }
    // In `v1beta1`, unknown fields are preserved unless it says otherwise.
    spec.entry("preserveUnknownFields").or_insert(Value::Bool(true));
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
        let client = conversion.remove("webhookClientConfig");
        let reviews = conversion.remove("conversionReviewVersions");
        if let Some(client) = client {
            // This is the default in `v1beta1`. In `v1`, the field is required.
            let reviews = reviews.unwrap_or_else(|| json!(["v1beta1"]));
            let webhook = json!({ "clientConfig": client, "conversionReviewVersions": reviews });
            conversion.insert("webhook".into(), webhook);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spec: Value, expected: Value) {
        let document = |version: &str, spec: Value| json!({ "apiVersion": version, "kind": "CustomResourceDefinition", "spec": spec });
        let converted = convert_definition(&document(OLD, spec.clone()));
        assert_eq!(converted, Some(document(NEW, expected)), "{spec}");
    }

    #[test]
    fn copies_shared_settings_to_each_version() {
        let schema = json!({ "openAPIV3Schema": { "type": "object" } });
        check(
            json!({
                "version": "v1",
                "validation": schema,
                "subresources": { "status": {} },
                "additionalPrinterColumns": [{ "name": "Size", "JSONPath": ".spec.size" }],
                "preserveUnknownFields": false,
            }),
            json!({
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "schema": schema,
                    "subresources": { "status": {} },
                    "additionalPrinterColumns": [{ "name": "Size", "jsonPath": ".spec.size" }],
                }],
                "preserveUnknownFields": false,
            }),
        );
        check(
            json!({
                "version": "v1",
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }, { "name": "v2" }],
            }),
            json!({
                "versions": [
                    { "name": "v1", "served": true, "storage": true, "schema": schema },
                    { "name": "v2", "schema": { "openAPIV3Schema": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true } } },
                ],
                "preserveUnknownFields": true,
            }),
        );
    }

    #[test]
    fn moves_settings_of_conversion_webhook() {
        check(
            json!({
                "versions": [],
                "conversion": { "strategy": "Webhook", "webhookClientConfig": { "url": "https://a" } },
                "preserveUnknownFields": false,
            }),
            json!({
                "versions": [],
                "conversion": { "strategy": "Webhook", "webhook": {
                    "clientConfig": { "url": "https://a" }, "conversionReviewVersions": ["v1beta1"] } },
                "preserveUnknownFields": false,
            }),
        );
        check(json!(5), json!(5));
    }

    #[test]
    fn ignores_other_documents() {
        for document in [
            json!({ "apiVersion": NEW, "kind": "CustomResourceDefinition" }),
            json!({ "apiVersion": OLD, "kind": "ConfigMap" }),
            json!(null),
            json!([OLD]),
        ] {
            assert_eq!(convert_definition(&document), None, "{document}");
        }
    }
}
