//! Compares compiled CRDs with their manifests.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use rbuilder_kubernetes::crd::{Crd, Version};
use rbuilder_schema::undo_kube_quirks;
use serde_json::Value;

/// Asserts that a compiled CRD (`Kind::crd()`) equals its manifest.
///
/// # Panics
///
/// Panics with all differences if [`crd_differences`] finds any.
#[track_caller]
pub fn assert_crd_matches(crd: &CustomResourceDefinition, manifest: &str) {
    let differences = crd_differences(crd, manifest);
    assert!(
        differences.is_empty(),
        "the manifest differs from the types; run `rbuilder manifests`:\n  {}",
        differences.join("\n  ")
    );
}

/// Lists the differences between a compiled CRD (`Kind::crd()`) and its manifest, one per line.
///
/// Ignores what kube generates but the API server doesn't need: title and description of the
/// root, `nullable` on an optional status, the missing description of a status with alternatives,
/// and integers printed as floats.
///
/// Also ignores what only manifests contain: annotations, the list kind, and the properties
/// `apiVersion`, `kind` and `metadata`. kube always makes the spec required and the status a
/// subresource; manifests may differ in both.
pub fn crd_differences(crd: &CustomResourceDefinition, manifest: &str) -> Vec<String> {
    let manifest: Value = match serde_saphyr::from_str(manifest) {
        Ok(manifest) => manifest,
        Err(error) => return vec![format!("the manifest is not YAML: {error}")],
    };
    let compiled = match serde_json::to_value(crd) {
        Ok(compiled) => compiled,
        Err(error) => return vec![format!("the compiled CRD is not JSON: {error}")],
    };
    let mut found = Vec::new();
    compare_values(
        "metadata.name",
        &compiled["metadata"]["name"],
        &manifest["metadata"]["name"],
        &mut found,
    );
    for key in ["group", "scope"] {
        compare_values(
            &format!("spec.{key}"),
            &compiled["spec"][key],
            &manifest["spec"][key],
            &mut found,
        );
    }
    compare_values("spec.names", &names(&compiled), &names(&manifest), &mut found);
    for version in Crd::of(&compiled).versions() {
        compare_version(version, Crd::of(&manifest), &mut found);
    }
    found
}

fn compare_version(version: Version<'_>, manifest: Crd<'_>, found: &mut Vec<String>) {
    let path = format!("version {}", version.name);
    let Some(written) = manifest.version(version.name) else {
        found.push(format!("{path}: not in the manifest"));
        return;
    };
    let (mut compiled, written) = (
        comparable_version(version.value),
        comparable_version(written.value),
    );
    ignore_status_subresource(&mut compiled, &written);
    compare_values(&path, &compiled, &written, found);
}

fn ignore_status_subresource(compiled: &mut Value, written: &Value) {
    let status = written.pointer("/schema/openAPIV3Schema/properties/status");
    let has_status = status.is_some_and(|schema| !schema.is_null());
    // kube always generates a status subresource, so only the manifest reflects
    // `status_subresource = false`.
    if !has_status || written.pointer("/subresources/status").is_some() {
        return;
    }
    if let Some(subresources) = compiled["subresources"].as_object_mut() {
        subresources.remove("status");
        if subresources.is_empty() {
            compiled["subresources"].take();
        }
    }
}

fn names(crd: &Value) -> Value {
    let mut names = Crd::of(crd).names().clone();
    if let Some(names) = names.as_object_mut() {
        names.remove("listKind");
    }
    names
}

fn comparable_version(version: &Value) -> Value {
    let mut version = version.clone();
    undo_kube_quirks(&mut version);
    // kube always makes the spec required; `optional_spec` only affects the manifest.
    if let Some(root) = version
        .pointer_mut("/schema/openAPIV3Schema")
        .and_then(Value::as_object_mut)
        && let Some(required) = root.get_mut("required").and_then(Value::as_array_mut)
    {
        required.retain(|name| name != "spec");
        if required.is_empty() {
            root.remove("required");
        }
    }
    let properties = version.pointer_mut("/schema/openAPIV3Schema/properties");
    if let Some(properties) = properties.and_then(Value::as_object_mut) {
        for key in ["apiVersion", "kind", "metadata"] {
            properties.remove(key);
        }
    }
    version
}

fn compare_values(path: &str, compiled: &Value, written: &Value, found: &mut Vec<String>) {
    match (compiled, written) {
        (Value::Object(compiled), Value::Object(written)) => {
            let mut keys: Vec<&String> = compiled.keys().chain(written.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let path = format!("{path}.{key}");
                compare_values(
                    &path,
                    compiled.get(key).unwrap_or(&Value::Null),
                    written.get(key).unwrap_or(&Value::Null),
                    found,
                );
            }
        }
        (Value::Array(compiled), Value::Array(written)) if compiled.len() == written.len() => {
            for (index, (compiled, written)) in compiled.iter().zip(written).enumerate() {
                compare_values(&format!("{path}[{index}]"), compiled, written, found);
            }
        }
        (Value::Number(compiled), Value::Number(written)) if compiled.as_f64() == written.as_f64() => {}
        (compiled, written) if compiled == written => {}
        // The manifest may spell out an empty list, which the typed CRD skips on serialization.
        (Value::Null, Value::Array(list)) | (Value::Array(list), Value::Null) if list.is_empty() => {}
        (compiled, written) => {
            found.push(format!(
                "{path}: {compiled} in the types, {written} in the manifest"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::crd_differences;
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use serde_json::{Value, json};

    fn crd(spec_schema: Value) -> CustomResourceDefinition {
        serde_json::from_value(json!({
            "metadata": {"name": "foos.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"kind": "Foo", "plural": "foos", "singular": "foo"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "title": "Foo", "type": "object", "required": ["spec"],
                        "properties": {"spec": spec_schema},
                    }},
                }],
            },
        }))
        .expect("a CRD")
    }

    const MANIFEST: &str = "
metadata: {name: foos.example.com, annotations: {x: y}}
spec:
  group: example.com
  names: {kind: Foo, listKind: FooList, plural: foos, singular: foo}
  scope: Namespaced
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: A foo.
        properties:
          apiVersion: {type: string}
          spec: {type: object, properties: {size: {type: integer, minimum: 1}}}
        required: [spec]
        type: object
    served: true
    storage: true
";

    fn check(spec_schema: Value, expected: &[&str]) {
        assert_eq!(crd_differences(&crd(spec_schema), MANIFEST), expected);
    }

    #[test]
    fn ignores_quirks_of_kube_and_manifest() {
        check(
            json!({"type": "object", "properties": {"size": {"type": "integer", "minimum": 1.0}}}),
            &[],
        );
    }

    #[test]
    fn reports_path_of_stale_bound() {
        check(
            json!({"type": "object", "properties": {"size": {"type": "integer", "minimum": 2.0}}}),
            &[
                "version v1.schema.openAPIV3Schema.properties.spec.properties.size.minimum: \
               2.0 in the types, 1 in the manifest",
            ],
        );
    }

    #[test]
    fn manifest_may_have_status_without_subresource() {
        let differences = |subresources: Value, status: Value| {
            let mut compiled = serde_json::to_value(crd(json!({"type": "object"}))).expect("JSON");
            let mut written = compiled.clone();
            compiled["spec"]["versions"][0]["subresources"] = json!({"status": {}});
            compiled["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] =
                json!({"type": "object"});
            written["spec"]["versions"][0]["subresources"] = subresources;
            written["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = status;
            let compiled = serde_json::from_value(compiled).expect("a CRD");
            crd_differences(&compiled, &written.to_string()).len()
        };
        let status = json!({"type": "object"});
        assert_eq!(differences(json!({"status": {}}), status.clone()), 0);
        assert_eq!(differences(Value::Null, status), 0);
        // An outdated manifest from before the kind had a status.
        assert_eq!(differences(Value::Null, Value::Null), 2);
    }

    #[test]
    fn reports_missing_field() {
        check(
            json!({"type": "object"}),
            &["version v1.schema.openAPIV3Schema.properties.spec.properties: \
               null in the types, {\"size\":{\"minimum\":1,\"type\":\"integer\"}} in the manifest"],
        );
    }
}
