//! Finds the files that kustomizations refer to.

use std::collections::BTreeSet;

use rbuilder_yaml::is_yaml;
use serde_json::Value;

use crate::edit::kustomization::{FILE_NAMES, resolve_entry};

const MOST: usize = 2_000;

/// A kustomization, or a file that a kustomization lists directly or indirectly.
pub struct Reached {
    /// Path of the file.
    pub path: String,
    /// Directory of a kustomization. `None` for a file of objects.
    pub folder: Option<String>,
    /// Documents in the file.
    pub documents: Vec<Value>,
}

/// Follows the kustomizations in `roots`. `read` returns the documents of a file, or none if it
/// doesn't exist.
pub fn follow_kustomizations(roots: &[&str], read: &dyn Fn(&str) -> Vec<Value>) -> Vec<Reached> {
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

/// Files and directories listed in a kustomization, as written.
pub fn listed_paths(kustomization: &Value) -> impl Iterator<Item = &str> {
    let lists = ["resources", "bases", "components"].into_iter();
    let entries = lists.flat_map(|key| kustomization[key].as_array().into_iter().flatten());
    entries.filter_map(Value::as_str)
}
