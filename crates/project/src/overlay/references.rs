//! The files and directories that a kustomization refers to.

use serde_json::Value;

use super::Kustomization;

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

impl Kustomization {
    /// Returns the local files and directories that it refers to, without inline objects and URLs.
    /// Ordered by key: plain lists such as `resources`, then patches, then generators.
    pub fn references(&self) -> Vec<&str> {
        let mut found: Vec<&str> = LISTS.into_iter().flat_map(|key| self.entries(key)).collect();
        let objects = OBJECTS.iter().flat_map(|key| self.list(key));
        found.extend(objects.filter_map(|entry| entry["path"].as_str()));
        for generator in GENERATORS.iter().flat_map(|key| self.list(key)) {
            let items = |key: &str| generator[key].as_array().map_or(&[][..], Vec::as_slice);
            found.extend(
                items("envs")
                    .iter()
                    .chain([&generator["env"]])
                    .filter_map(Value::as_str),
            );
            let sources = items("files").iter().filter_map(Value::as_str);
            found.extend(sources.map(|source| source.split_once('=').map_or(source, |(_, path)| path)));
        }
        let openapi = self
            .fields
            .get("openapi")
            .and_then(|openapi| openapi["path"].as_str());
        found.extend(openapi);
        found.retain(|path| !path.contains(['\n', '{', '?']) && !path.contains("://"));
        found
    }
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
        let kustomization = Kustomization::parse("kustomization.yaml", text).expect("YAML");
        assert_eq!(
            kustomization.references(),
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
        assert!(Kustomization::default().references().is_empty());
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
