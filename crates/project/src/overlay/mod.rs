//! Reads kustomizations: what they include, and how they change it. Commands that need the objects of
//! an overlay, its patches or its names take them from here.
//!
//! [`Kustomization`] is one file. [`follow_kustomizations`] finds the files that several include, a
//! [`Selector`] the objects that a patch is for, and [`apply_patch`] changes an object. Edits of the
//! file itself are in [`edit::kustomization`](crate::edit::kustomization).

mod follow;
mod json_patch;
mod references;
mod selector;
mod strategic;

use anyhow::{Result, bail};
use rbuilder_diagnostic::suggest::find_nearest;
use rbuilder_yaml::{describe_failure, is_yaml, parse_documents};
use serde_json::{Map, Value, json};

pub use follow::{Reached, follow_kustomizations};
pub use references::resolve_entry;
pub use selector::{Matches, Selector, namespace_of};
pub use strategic::{merge, merge_key};

/// File names of a kustomization, in kustomize's lookup order.
pub const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The deployment's kustomization.
pub const DEPLOYMENT: &str = "config/default/kustomization.yaml";

/// The fields of a kustomization, as in `kustomize.config.k8s.io/v1beta1`, with deprecated ones.
const FIELDS: &[&str] = &[
    "apiVersion",
    "bases",
    "buildMetadata",
    "commonAnnotations",
    "commonLabels",
    "components",
    "configMapGenerator",
    "configurations",
    "crds",
    "generatorOptions",
    "generators",
    "helmChartInflationGenerator",
    "helmCharts",
    "helmGlobals",
    "images",
    "imageTags",
    "inventory",
    "kind",
    "labels",
    "metadata",
    "namePrefix",
    "nameSuffix",
    "namespace",
    "openapi",
    "patches",
    "patchesJson6902",
    "patchesStrategicMerge",
    "replacements",
    "replicas",
    "resources",
    "secretGenerator",
    "sortOptions",
    "transformers",
    "validators",
    "vars",
];

/// A kustomization file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kustomization {
    /// The path of the file.
    pub path: String,
    fields: Map<String, Value>,
}

/// A patch of a kustomization.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    /// The path of the file with the patch: that of the kustomization if the patch is inline.
    pub path: String,
    /// The file as the kustomization spells it. `None` for an inline patch.
    pub file: Option<String>,
    /// The text of an inline patch.
    pub text: Option<String>,
    /// The selector in the kustomization. `null` if the patch itself names its object.
    pub target: Value,
}

impl Patch {
    /// Selects the objects that a document of the patch is for.
    pub fn selector<'v>(&'v self, document: &'v Value) -> Selector<'v> {
        match self.has_target() {
            true => Selector::of_target(&self.target),
            false => Selector::of_patch(document),
        }
    }

    /// Returns whether the kustomization has a selector for the patch.
    pub fn has_target(&self) -> bool {
        self.target.is_object()
    }
}

impl Kustomization {
    /// Parses a file.
    ///
    /// # Errors
    /// Fails if the text isn't YAML, or isn't a mapping.
    pub fn parse(path: &str, text: &str) -> Result<Kustomization> {
        let documents = parse_documents(text).map_err(|error| describe_failure(path, text, &error))?;
        match documents.into_iter().next() {
            None => Ok(Kustomization::of(path, &Value::Null)),
            Some(document) if document.is_object() => Ok(Kustomization::of(path, &document)),
            Some(_) => bail!("expected a mapping with `resources` and other fields in {path}"),
        }
    }

    /// The kustomization in a parsed document. One that isn't a mapping has no fields.
    pub fn of(path: &str, document: &Value) -> Kustomization {
        let fields = document.as_object().cloned().unwrap_or_default().into_iter();
        // Go's parser of JSON ignores the case of fields.
        let known = |key: &str| FIELDS.iter().find(|known| known.eq_ignore_ascii_case(key));
        let fields = fields.filter(|(_, value)| !value.is_null());
        Kustomization {
            path: path.to_owned(),
            fields: fields
                .map(|(key, value)| (known(&key).map_or(key, |known| (*known).to_owned()), value))
                .collect(),
        }
    }

    /// Finds the kustomization of a directory. `read` returns the text of a file, or `None` if it
    /// doesn't exist.
    ///
    /// # Errors
    /// Fails if `read` does, or if the file can't be parsed.
    pub fn find(
        folder: &str,
        mut read: impl FnMut(&str) -> Result<Option<String>>,
    ) -> Result<Option<Kustomization>> {
        for name in FILE_NAMES {
            let path = format!("{folder}/{name}");
            if let Some(text) = read(&path)? {
                return Kustomization::parse(&path, &text).map(Some);
            }
        }
        Ok(None)
    }

    /// The directory of the file, to which its entries are relative.
    pub fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Returns whether it changes the objects of the kustomization that includes it, too.
    pub fn is_component(&self) -> bool {
        self.text("kind") == Some("Component")
    }

    /// The namespace that all objects get.
    pub fn namespace(&self) -> Option<&str> {
        self.text("namespace")
    }

    /// What all names begin with.
    pub fn name_prefix(&self) -> Option<&str> {
        self.text("namePrefix")
    }

    /// The strings at a key, such as the file and directories in `transformers`.
    pub fn entries(&self, key: &str) -> impl Iterator<Item = &str> {
        self.list(key).iter().filter_map(Value::as_str)
    }

    /// Returns whether a list has an entry, with or without a leading `./`.
    pub fn lists(&self, key: &str, entry: &str) -> bool {
        self.entries(key)
            .any(|known| known.strip_prefix("./").unwrap_or(known) == entry)
    }

    /// The files and directories with objects: `resources`, the deprecated `bases`, and components.
    pub fn included(&self) -> impl Iterator<Item = &str> {
        let keys = ["resources", "bases", "components"].into_iter();
        keys.flat_map(|key| self.entries(key))
    }

    /// The values of a list, e.g. of `replacements`. Empty if the key is missing.
    pub fn list(&self, key: &str) -> &[Value] {
        let list = self.fields.get(key).and_then(Value::as_array);
        list.map_or(&[], Vec::as_slice)
    }

    /// A string. `None` if the key is missing or another value.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.fields.get(key).and_then(Value::as_str)
    }

    /// The fields that aren't empty.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
        let set = self.fields.iter().filter(move |(_, value)| !is_empty(value));
        set.map(|(key, _)| key.as_str())
    }

    /// Returns whether any of the fields is set, even to an empty value.
    pub fn sets(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.fields.contains_key(*key))
    }

    /// The fields that kustomize doesn't know, because of which it fails. Each with a similar one.
    pub fn unknown_fields(&self) -> Vec<(&str, Option<&'static str>)> {
        let unknown = self.fields.keys().filter(|key| !FIELDS.contains(&key.as_str()));
        unknown
            .map(|key| (key.as_str(), find_nearest(key, FIELDS.iter().copied())))
            .collect()
    }

    /// The patches in all notations, in the order in which they apply.
    pub fn patches(&self) -> Vec<Patch> {
        let folder = self.folder();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let patch = |file: Option<String>, inline: Option<String>, target: &Value| Patch {
            path: match &file {
                Some(file) => resolve_entry(folder, file).unwrap_or_else(|| format!("{folder}/{file}")),
                None => self.path.clone(),
            },
            text: inline.filter(|_| file.is_none()),
            file,
            target: target.clone(),
        };
        let of_entry = |entry: &Value| {
            let (file, inline) = (text(&entry["path"]), text(&entry["patch"]));
            (file.is_some() || inline.is_some()).then(|| patch(file, inline, &entry["target"]))
        };
        let strategic = self.entries("patchesStrategicMerge");
        let strategic = strategic.map(|entry| match entry.contains('\n') {
            true => patch(None, Some(entry.to_owned()), &Value::Null),
            false => patch(Some(entry.to_owned()), None, &Value::Null),
        });
        let entries = self.list("patches").iter().chain(self.list("patchesJson6902"));
        strategic.chain(entries.filter_map(of_entry)).collect()
    }

    /// The objects of its generators, with the key that generates them. Only their kinds and names are
    /// known.
    pub fn generated(&self) -> Vec<(&'static str, Value)> {
        let generators = [("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret")];
        let objects = generators.into_iter().flat_map(|(key, kind)| {
            let entries = self.list(key).iter();
            entries.map(move |entry| {
                let metadata = json!({ "name": entry["name"], "namespace": entry["namespace"] });
                let mut object = json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata });
                if entry["namespace"].is_null() {
                    object["metadata"]
                        .as_object_mut()
                        .map(|metadata| metadata.remove("namespace"));
                }
                (key, object)
            })
        });
        objects.collect()
    }

    /// The labels that all objects get, and whether selectors get them too.
    pub fn labels(&self) -> impl Iterator<Item = (&Map<String, Value>, bool)> {
        let common = self
            .fields
            .get("commonLabels")
            .into_iter()
            .map(|pairs| (pairs, true));
        let labels = self.list("labels").iter();
        let labels = labels.map(|entry| (&entry["pairs"], entry["includeSelectors"] == true));
        let all = common.chain(labels);
        all.filter_map(|(pairs, is_selected)| Some((pairs.as_object()?, is_selected)))
    }

    /// The annotations that all objects get.
    pub fn annotations(&self) -> Option<&Map<String, Value>> {
        self.fields.get("commonAnnotations").and_then(Value::as_object)
    }
}

/// Returns whether an entry names a repository, without a scheme.
pub fn is_remote(entry: &str) -> bool {
    let host = entry.split_once('/').map(|(host, _)| host);
    host.is_some_and(|host| host.contains('.') && !host.starts_with('.') && !is_yaml(host))
}

/// Applies a patch to an object: a JSON patch if it's a list, otherwise a strategic merge patch. What
/// identifies the object stays, since a patch with a target may have another identity.
///
/// # Errors
/// Fails with a phrase about the operation that can't be applied. The object is unchanged then.
pub fn apply_patch(object: &mut Value, patch: &Value) -> Result<(), String> {
    let mut patched = object.clone();
    match patch.as_array() {
        Some(operations) => json_patch::apply_json_patch(&mut patched, operations)?,
        None => merge(&mut patched, patch),
    }
    for key in ["apiVersion", "kind"] {
        match (patched.as_object_mut(), object.get(key)) {
            (Some(patched), Some(value)) => drop(patched.insert(key.to_owned(), value.clone())),
            (Some(patched), None) => drop(patched.remove(key)),
            (None, _) => return Err("it leaves no object".to_owned()),
        }
    }
    match patched.get_mut("metadata").and_then(Value::as_object_mut) {
        Some(metadata) => metadata.insert("name".to_owned(), object["metadata"]["name"].clone()),
        None => return Err("it leaves no object with a name".to_owned()),
    };
    *object = patched;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Kustomization {
        Kustomization::parse("config/default/kustomization.yaml", text).expect("a kustomization")
    }

    #[test]
    fn patches_of_all_notations_are_read() {
        let read = parse(
            "patchesStrategicMerge: [old.yaml, \"kind: Pod\\nmetadata: {name: x}\"]\n\
             patchesJson6902: [{path: j.json, target: {kind: Role}}]\n\
             patches: [{path: ../p.yaml}, {patch: '[]', target: {name: a}}, {target: {name: b}}]\n",
        );
        let patches = read.patches();
        let shown: Vec<(&str, bool, bool)> = patches
            .iter()
            .map(|patch| (patch.path.as_str(), patch.text.is_some(), patch.has_target()))
            .collect();
        let own = "config/default/kustomization.yaml";
        assert_eq!(
            shown,
            [
                ("config/default/old.yaml", false, false),
                (own, true, false),
                ("config/p.yaml", false, false),
                (own, true, true),
                ("config/default/j.json", false, true),
            ]
        );
    }

    #[test]
    fn unknown_fields_are_found() {
        let read = parse("resource: [a.yaml]\nNameSpace: x\nshard: 1\nlabels:\n");
        assert_eq!(
            read.unknown_fields(),
            [("resource", Some("resources")), ("shard", None)]
        );
        assert_eq!(
            read.keys().collect::<Vec<_>>(),
            ["namespace", "resource", "shard"]
        );
    }

    #[test]
    fn hosts_are_told_from_directories() {
        for (entry, expected) in [
            ("github.com/org/repo//config", true),
            ("git@github.com:org/repo", true),
            ("../crd", false),
            ("./crd", false),
            ("manager/manager.yaml", false),
            ("manager.yaml", false),
        ] {
            assert_eq!(is_remote(entry), expected, "{entry}");
        }
    }

    #[test]
    fn only_mappings_are_kustomizations() {
        assert_eq!(parse("").included().count(), 0);
        let error = Kustomization::parse("config/kustomization.yaml", "- a\n").expect_err("a list");
        assert!(error.to_string().starts_with("expected a mapping"), "{error}");
    }

    #[test]
    fn a_patch_does_not_rename_the_object() {
        let before = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" }, "spec": {} });
        for (patch, expected) in [
            (
                json!({ "kind": "Role", "metadata": { "name": "b" }, "spec": { "x": 1 } }),
                Ok(json!({ "x": 1 })),
            ),
            (
                json!([{ "op": "add", "path": "/spec/x", "value": 1 }]),
                Ok(json!({ "x": 1 })),
            ),
            (
                json!([{ "op": "remove", "path": "/metadata" }]),
                Err("it leaves no object with a name"),
            ),
            (
                json!([{ "op": "remove", "path": "/spec/y" }]),
                Err("`/spec/y` is not there"),
            ),
        ] {
            let mut object = before.clone();
            let applied = apply_patch(&mut object, &patch);
            let mut wanted = before.clone();
            if let Ok(spec) = &expected {
                wanted["spec"] = spec.clone();
            }
            assert_eq!(applied, expected.map(drop).map_err(str::to_owned), "{patch}");
            assert_eq!(object, wanted, "{patch}");
        }
    }
}
