//! The objects applied by `kubectl apply -k config/default`.

use std::collections::BTreeMap;

use rbuilder_yaml::{list_items, parse_documents};
use serde_json::Value;

use crate::overlay::{DEPLOYMENT, Kustomization, Matches, Patch, Reached, follow_kustomizations};

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
            kustomization,
            documents,
        } = reached;
        let objects = documents.into_iter().flat_map(list_items);
        found.extend(objects.map(|object| AppliedObject {
            object,
            origin: path.clone(),
            is_generated: false,
        }));
        if let Some(kustomization) = kustomization {
            found.extend(generated_objects(&kustomization));
            let patches = kustomization.patches().into_iter();
            deleted.extend(patches.filter_map(|patch| Some((deletion(read, &patch)?, patch))));
        }
    }
    let is_deleted = |found: &AppliedObject| {
        let mut selectors = deleted.iter().map(|(document, patch)| patch.selector(document));
        selectors.any(|selector| selector.matches(&found.object) == Matches::Yes)
    };
    found.retain(|found| !is_deleted(found));
    let default = read(DEPLOYMENT).and_then(|text| Kustomization::parse(DEPLOYMENT, &text).ok());
    let namespace = default.as_ref().and_then(Kustomization::namespace);
    for role in found.iter_mut().filter(|found| found.object["kind"] == "Role") {
        // kustomize moves all objects to the namespace of the outermost kustomization.
        if let Some(namespace) = namespace {
            role.object["metadata"]["namespace"] = namespace.into();
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

fn generated_objects(kustomization: &Kustomization) -> impl Iterator<Item = AppliedObject> {
    let generated = kustomization.generated().into_iter();
    generated.map(|(key, object)| AppliedObject {
        object,
        origin: format!("`{key}` of {}", kustomization.path),
        is_generated: true,
    })
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn read_documents(read: &dyn Fn(&str) -> Option<String>, path: &str) -> Vec<Value> {
    let documents = read(path).and_then(|text| parse_documents(&text).ok());
    documents.unwrap_or_default()
}

/// The document of a patch that deletes objects. kubebuilder has one for objects that cert-manager
/// makes unnecessary.
fn deletion(read: &dyn Fn(&str) -> Option<String>, patch: &Patch) -> Option<Value> {
    let documents = match &patch.text {
        Some(text) => parse_documents(text).ok()?,
        None => read_documents(read, &patch.path),
    };
    documents
        .into_iter()
        .find(|document| document["$patch"] == "delete")
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
            &["b", "s"],
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

    /// The overlay has every notation that we read, and `rendered.yaml` is what kubectl prints for it.
    #[test]
    fn objects_of_an_overlay_are_those_that_kubectl_applies() {
        let folder =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/products/tests/overlay");
        let tree = crate::tree::Tree::new(folder);
        let read = |path: &str| tree.read(path).expect("readable");
        let rendered = parse_documents(&read("rendered.yaml").expect("the record")).expect("YAML");
        let expected: std::collections::BTreeSet<(String, String)> = rendered
            .iter()
            .map(|object| (text(&object["kind"]), text(&object["metadata"]["name"])))
            .collect();
        assert_eq!(
            find_objects(&read)
                .into_keys()
                .collect::<std::collections::BTreeSet<_>>(),
            expected
        );
    }
}
