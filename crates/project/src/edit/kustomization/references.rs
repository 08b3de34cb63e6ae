//! The files and directories that a kustomization refers to.

use serde_json::Value;

/// Keys whose values are lists of files or directories. Some also accept inline objects.
const LISTS: [&str; 10] = [
    "resources",
    "components",
    "bases",
    "crds",
    "configurations",
    "transformers",
    "generators",
    "validators",
    "patchesStrategicMerge",
    "patchesJson6902",
];
const OBJECTS: [&str; 3] = ["patches", "patchesJson6902", "replacements"];
const GENERATORS: [&str; 2] = ["configMapGenerator", "secretGenerator"];

/// Returns the local files and directories that a kustomization refers to, without inline objects
/// and URLs. Ordered by key: plain lists such as `resources`, then patches, then generators.
pub fn list_references(kustomization: &Value) -> Vec<String> {
    let items = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let mut found: Vec<Value> = Vec::new();
    for key in LISTS {
        found.extend(items(kustomization, key));
    }
    for key in OBJECTS {
        let entries = items(kustomization, key);
        found.extend(entries.iter().map(|entry| entry["path"].clone()));
    }
    for generator in GENERATORS.iter().flat_map(|key| items(kustomization, key)) {
        found.extend(items(&generator, "envs"));
        found.push(generator["env"].clone());
        found.extend(items(&generator, "files").iter().map(path_of_source));
    }
    found.push(kustomization["openapi"]["path"].clone());
    let paths = found.iter().filter_map(Value::as_str);
    paths
        .filter(|path| !path.contains(['\n', '{', '?']) && !path.contains("://"))
        .map(str::to_owned)
        .collect()
}

fn path_of_source(source: &Value) -> Value {
    let text = source.as_str().unwrap_or_default();
    text.split_once('=').map_or(text, |(_, path)| path).into()
}

/// Resolves a kustomization entry to a path in the project. Returns `None` if it points outside.
pub fn resolve_entry(folder: &str, entry: &str) -> Option<String> {
    // URLs and absolute paths.
    if entry.contains("://") || entry.starts_with('/') || entry.contains('?') {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in entry.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_all_notations_of_a_path() {
        let text = "resources: [../crd, https://example.com/x.yaml, 'github.com/a/b?ref=v1']\n\
                    components:\n- ./a\n\
                    patches:\n- path: patch.yaml\n- patch: |-\n    kind: Pod\n  target: {kind: Pod}\n\
                    patchesStrategicMerge:\n- old.yaml\n- |-\n  kind: Pod\n  metadata: {name: x}\n\
                    replacements:\n- path: r.yaml\n- source: {kind: Pod}\n\
                    configMapGenerator:\n- name: c\n  files: [f.txt, key=g.txt]\n  envs: [e.env]\n  literals: [a=b]\n\
                    openapi:\n  path: schema.json\n";
        let kustomization: Value = serde_saphyr::from_str(text).expect("YAML");
        assert_eq!(
            list_references(&kustomization),
            [
                "../crd",
                "./a",
                "old.yaml",
                "patch.yaml",
                "r.yaml",
                "e.env",
                "f.txt",
                "g.txt",
                "schema.json"
            ]
        );
        assert!(list_references(&Value::Null).is_empty());
    }

    #[test]
    fn entries_are_resolved_within_the_project() {
        for (folder, entry, expected) in [
            ("config/default", "../crd", Some("config/crd")),
            ("config/rbac", "role.yaml", Some("config/rbac/role.yaml")),
            ("config/default", "./../../deploy/./a.yaml", Some("deploy/a.yaml")),
            ("config/default", "../../../x", None),
            ("config/default", "../..", None),
            ("config/default", "https://example.com/x.yaml", None),
            ("config/default", "github.com/a/b?ref=v1", None),
            ("config/default", "/etc/passwd", None),
        ] {
            assert_eq!(resolve_entry(folder, entry).as_deref(), expected, "{entry}");
        }
    }
}
