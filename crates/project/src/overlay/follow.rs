//! Finds the files that kustomizations refer to.

use std::collections::BTreeSet;

use rbuilder_yaml::is_yaml;
use serde_json::Value;

use super::{FILE_NAMES, Kustomization, resolve_entry};

const MOST: usize = 2_000;

/// A kustomization, or a file that a kustomization includes directly or indirectly.
pub struct Reached {
    /// Path of the file.
    pub path: String,
    /// The kustomization. `None` for a file of objects.
    pub kustomization: Option<Kustomization>,
    /// Objects in the file.
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
                kustomization: None,
                documents,
            });
            continue;
        }
        let mut lists = FILE_NAMES.iter().map(|name| format!("{path}/{name}"));
        let found = lists.find_map(|list| Some(Kustomization::of(&list, read(&list).first()?)));
        if let Some(kustomization) = found {
            let entries = kustomization.included();
            open.extend(entries.filter_map(|entry| resolve_entry(&path, entry)));
            reached.push(Reached {
                path: kustomization.path.clone(),
                kustomization: Some(kustomization),
                documents: Vec::new(),
            });
        }
    }
    reached
}
