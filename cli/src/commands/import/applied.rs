//! The objects applied by `kubectl apply -k config/default`.

use std::collections::BTreeMap;

use rbuilder_yaml::{list_items, parse_documents};
use serde_json::{Value, json};

use crate::edit::kustomization::resolve_entry;
use rbuilder_go_project::{Reached, follow_kustomizations};

pub(super) type Objects = BTreeMap<(String, String), AppliedObject>;

pub(super) struct AppliedObject {
    pub(super) object: Value,
    /// Where it is defined, e.g. "config/default/metrics_service.yaml".
    pub(super) origin: String,
    /// Whether it comes from a kustomize generator, in which case its content is unknown.
    pub(super) is_generated: bool,
}

/// Finds the objects that `kubectl apply -k config/default` would apply, by kind and unprefixed
/// name.
pub(super) fn find_objects(read: &dyn Fn(&str) -> Option<String>) -> Objects {
    let mut found = Vec::new();
    let mut deleted = Vec::new();
    for reached in follow_kustomizations(&["config/default"], &|path| read_documents(read, path)) {
        let Reached {
            path,
            folder,
            documents,
        } = reached;
        let Some(folder) = folder else {
            found.extend(
                documents
                    .into_iter()
                    .flat_map(list_items)
                    .map(|object| AppliedObject {
                        object,
                        origin: path.clone(),
                        is_generated: false,
                    }),
            );
            continue;
        };
        for kustomization in documents {
            found.extend(generated_objects(&kustomization, &path));
            let patches = kustomization["patches"].as_array().into_iter().flatten();
            deleted.extend(patches.filter_map(|patch| deletion(read, &folder, patch)));
        }
    }
    found.retain(|found| !deleted.iter().any(|target| is_selected(&found.object, target)));
    let default = read_documents(read, "config/default/kustomization.yaml");
    let namespace = default.first().map_or(&Value::Null, |list| &list["namespace"]);
    for role in found.iter_mut().filter(|found| found.object["kind"] == "Role") {
        // kustomize moves all objects to the namespace of the outermost kustomization.
        if namespace.is_string() {
            role.object["metadata"]["namespace"] = namespace.clone();
        }
    }
    found
        .into_iter()
        .map(|found| {
            (
                (
                    text(&found.object["kind"]),
                    text(&found.object["metadata"]["name"]),
                ),
                found,
            )
        })
        .collect()
}

fn generated_objects(kustomization: &Value, path: &str) -> Vec<AppliedObject> {
    let mut found = Vec::new();
    for (key, kind) in [("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret")] {
        for entry in kustomization[key].as_array().into_iter().flatten() {
            found.push(AppliedObject {
                object: json!({ "kind": kind, "metadata": { "name": entry["name"] } }),
                origin: format!("`{key}` of {path}"),
                is_generated: true,
            });
        }
    }
    found
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn read_documents(read: &dyn Fn(&str) -> Option<String>, path: &str) -> Vec<Value> {
    let documents = read(path).and_then(|text| parse_documents(&text).ok());
    documents.unwrap_or_default()
}

/// Target of a patch that deletes objects. kubebuilder has one for objects that cert-manager makes
/// unnecessary.
fn deletion(read: &dyn Fn(&str) -> Option<String>, folder: &str, patch: &Value) -> Option<Value> {
    let documents = match patch["patch"].as_str() {
        Some(text) => parse_documents(text).ok()?,
        None => read_documents(read, &resolve_entry(folder, patch["path"].as_str()?)?),
    };
    let deletes = documents
        .into_iter()
        .find(|document| document["$patch"] == "delete")?;
    match &patch["target"] {
        Value::Null => Some(json!({ "kind": deletes["kind"], "name": deletes["metadata"]["name"] })),
        target => Some(target.clone()),
    }
}

/// Whether a kustomize target selects an object. Supports kind, name, and equality-based labels.
fn is_selected(object: &Value, target: &Value) -> bool {
    let agrees = |key: &str, value: &Value| target[key].is_null() || target[key] == *value;
    let selector = target["labelSelector"].as_str().unwrap_or_default();
    let has_label = |part: &str| match part.split_once('=') {
        Some((key, value)) => object["metadata"]["labels"][key.trim()] == value.trim(),
        None => false,
    };
    target["annotationSelector"].is_null()
        && agrees("kind", &object["kind"])
        && agrees("name", &object["metadata"]["name"])
        && selector.split(',').filter(|part| !part.is_empty()).all(has_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_generators_are_there() {
        let read = |path: &str| match path {
            "config/default/kustomization.yaml" => Some("resources: [../manager]\n".to_owned()),
            "config/manager/kustomization.yaml" => Some(
                "configMapGenerator:\n- name: settings\n  files: [a.yaml]\nsecretGenerator:\n- name: key\n"
                    .to_owned(),
            ),
            _ => None,
        };
        let found: Vec<String> = find_objects(&read)
            .into_iter()
            .map(|((kind, name), object)| format!("{kind} {name}: {}", object.origin))
            .collect();
        assert_eq!(
            found,
            [
                "ConfigMap settings: `configMapGenerator` of config/manager/kustomization.yaml",
                "Secret key: `secretGenerator` of config/manager/kustomization.yaml",
            ]
        );
    }

    #[test]
    fn objects_that_patches_delete_are_not_there() {
        let check = |patches: &str, expected: &[&str]| {
            let root = format!("resources: [a.yaml, ../b/]\npatches: {patches}");
            let read = |path: &str| {
                match path {
                "config/default/kustomization.yaml" => Some(root.clone()),
                "config/default/a.yaml" => {
                    Some("kind: Role\nmetadata: {name: a, labels: {part: x}}\n---\nkind: Service\nmetadata: {name: s}\n".to_owned())
                }
                "config/b/kustomization.yaml" => Some("resources: [role.yaml]".to_owned()),
                "config/b/role.yaml" => Some("kind: Role\nmetadata: {name: b, labels: {part: y}}\n".to_owned()),
                "config/default/delete.yaml" => Some("$patch: delete\nkind: Role\nmetadata: {name: b}\n".to_owned()),
                _ => None,
            }
            };
            let names: Vec<String> = find_objects(&read).into_keys().map(|(_, name)| name).collect();
            assert_eq!(names, expected, "{patches}");
        };
        check("[]", &["a", "b", "s"]);
        check("[{path: delete.yaml}]", &["a", "s"]);
        check(
            "[{path: delete.yaml, target: {labelSelector: part=x}}]",
            &["b", "s"],
        );
        check("[{path: delete.yaml, target: {kind: Service}}]", &["a", "b"]);
        check(
            "[{path: delete.yaml, target: {labelSelector: part in (x)}}]",
            &["a", "b", "s"],
        );
        check(
            "[{path: delete.yaml, target: {annotationSelector: part=x}}]",
            &["a", "b", "s"],
        );
        check(
            "[{path: missing.yaml}, {patch: 'kind: Role', target: {kind: Role}}]",
            &["a", "b", "s"],
        );
    }
}
