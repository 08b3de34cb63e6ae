//! The files that kustomizations are made of.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::edit::kustomization::{FILE_NAMES, resolve_entry};
use crate::yaml_stream::is_yaml;

/// Files and folders that are followed at most.
const MOST: usize = 2_000;

/// A file that a kustomization lists, directly or through others, or a kustomization itself.
pub(crate) struct Reached {
    pub(crate) path: String,
    /// The folder of a kustomization; `None` for a file of objects.
    pub(crate) folder: Option<String>,
    pub(crate) documents: Vec<Value>,
}

/// Follows the kustomizations of folders. `read` returns the documents of a file, none of one that is not there.
pub(crate) fn follow_kustomizations(roots: &[&str], read: &dyn Fn(&str) -> Vec<Value>) -> Vec<Reached> {
    let mut open: Vec<String> = roots.iter().map(|root| (*root).to_owned()).collect();
    let mut seen = BTreeSet::new();
    let mut reached = Vec::new();
    while let Some(path) = open.pop() {
        if !seen.insert(path.clone()) || seen.len() > MOST {
            continue;
        }
        if is_yaml(&path) {
            let documents = read(&path);
            reached.push(Reached {
                path,
                folder: None,
                documents,
            });
            continue;
        }
        for name in FILE_NAMES {
            let list = format!("{path}/{name}");
            let documents = read(&list);
            if documents.is_empty() {
                continue;
            }
            let entries = documents.iter().flat_map(listed_paths);
            open.extend(entries.filter_map(|entry| resolve_entry(&path, entry)));
            reached.push(Reached {
                path: list,
                folder: Some(path.clone()),
                documents,
            });
        }
    }
    reached
}

/// Returns what a kustomization is made of: files and folders, as it lists them.
pub(crate) fn listed_paths(kustomization: &Value) -> impl Iterator<Item = &str> {
    let lists = ["resources", "bases", "components"].into_iter();
    let entries = lists.flat_map(|key| kustomization[key].as_array().into_iter().flatten());
    entries.filter_map(Value::as_str)
}
