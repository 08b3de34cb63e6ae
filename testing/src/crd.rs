//! Comparison of a CRD as the compiled types describe it with its manifest.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use rbuilder_schema::undo_kube_quirks;
use serde_json::Value;

/// Panics with every difference between a kind as compiled (`Kind::crd()`) and its manifest.
///
/// # Panics
/// When [`crd_differences`] finds any.
#[track_caller]
pub fn assert_crd_matches(crd: &CustomResourceDefinition, manifest: &str) {
    let differences = crd_differences(crd, manifest);
    assert!(
        differences.is_empty(),
        "the manifest does not say what the types say; `rbuilder manifests` may be due:\n  {}",
        differences.join("\n  ")
    );
}

/// The differences between a kind as compiled (`Kind::crd()`) and its manifest, one line each.
///
/// Left out is what kube's own pipeline puts into `crd()` and the API server does without: the root's title
/// and description, `nullable` on the optional status and the loss of its description where the status has
/// alternatives, whole numbers printed as floats, and the wrapping of alternatives that keeps kube's rewriting
/// away from them; and what only the manifest has: annotations, the list kind, and the `apiVersion`, `kind` and
/// `metadata` properties.
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
    compare(
        "metadata.name",
        &compiled["metadata"]["name"],
        &manifest["metadata"]["name"],
        &mut found,
    );
    for key in ["group", "scope"] {
        compare(
            &format!("spec.{key}"),
            &compiled["spec"][key],
            &manifest["spec"][key],
            &mut found,
        );
    }
    compare("spec.names", &names(&compiled), &names(&manifest), &mut found);
    for version in compiled["spec"]["versions"].as_array().into_iter().flatten() {
        compare_version(version, &manifest, &mut found);
    }
    found
}

fn compare_version(version: &Value, manifest: &Value, found: &mut Vec<String>) {
    let name = version["name"].as_str().unwrap_or_default();
    let path = format!("version {name}");
    let written = manifest["spec"]["versions"].as_array().into_iter().flatten();
    let Some(written) = written
        .into_iter()
        .find(|written| written["name"] == version["name"])
    else {
        found.push(format!("{path}: not in the manifest"));
        return;
    };
    compare(
        &path,
        &comparable_version(version),
        &comparable_version(written),
        found,
    );
}

fn names(crd: &Value) -> Value {
    let mut names = crd["spec"]["names"].clone();
    if let Some(names) = names.as_object_mut() {
        names.remove("listKind");
    }
    names
}

/// A version without what kube adds, and without the properties that only a manifest lists.
fn comparable_version(version: &Value) -> Value {
    let mut version = version.clone();
    undo_kube_quirks(&mut version);
    let properties = version.pointer_mut("/schema/openAPIV3Schema/properties");
    if let Some(properties) = properties.and_then(Value::as_object_mut) {
        for key in ["apiVersion", "kind", "metadata"] {
            properties.remove(key);
        }
    }
    version
}

fn compare(path: &str, compiled: &Value, written: &Value, found: &mut Vec<String>) {
    match (compiled, written) {
        (Value::Object(compiled), Value::Object(written)) => {
            let mut keys: Vec<&String> = compiled.keys().chain(written.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let path = format!("{path}.{key}");
                compare(
                    &path,
                    compiled.get(key).unwrap_or(&Value::Null),
                    written.get(key).unwrap_or(&Value::Null),
                    found,
                );
            }
        }
        (Value::Array(compiled), Value::Array(written)) if compiled.len() == written.len() => {
            for (index, (compiled, written)) in compiled.iter().zip(written).enumerate() {
                compare(&format!("{path}[{index}]"), compiled, written, found);
            }
        }
        (Value::Number(compiled), Value::Number(written)) if compiled.as_f64() == written.as_f64() => {}
        (compiled, written) if compiled == written => {}
        // The typed CRD leaves empty lists out; a manifest may spell them.
        (Value::Null, Value::Array(list)) | (Value::Array(list), Value::Null) if list.is_empty() => {}
        (compiled, written) => {
            found.push(format!(
                "{path}: the types say {compiled}, the manifest says {written}"
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
    fn what_only_one_pipeline_writes_is_no_difference() {
        check(
            json!({"type": "object", "properties": {"size": {"type": "integer", "minimum": 1.0}}}),
            &[],
        );
    }

    #[test]
    fn a_stale_bound_is_named_with_its_path() {
        check(
            json!({"type": "object", "properties": {"size": {"type": "integer", "minimum": 2.0}}}),
            &[
                "version v1.schema.openAPIV3Schema.properties.spec.properties.size.minimum: \
               the types say 2.0, the manifest says 1",
            ],
        );
    }

    #[test]
    fn a_missing_field_is_named() {
        check(
            json!({"type": "object"}),
            &["version v1.schema.openAPIV3Schema.properties.spec.properties: \
               the types say null, the manifest says {\"size\":{\"minimum\":1,\"type\":\"integer\"}}"],
        );
    }
}
