//! PROJECT in format versions 2 and 3-alpha, as written by kubebuilder 2 and operator-sdk 1. They only
//! have the names of kinds; version 2 lacks the name and the layout of the project as well.

use anyhow::Result;
use rbuilder_yaml::describe_failure;
use serde_json::{Value, json};

use super::read_repo;
use crate::tree::Tree;

/// Converts PROJECT from version 2 or 3-alpha to 3. `None` for any other version.
pub(crate) fn to_format_3(text: &str, tree: &Tree) -> Result<Option<String>> {
    let path = crate::project::FILE;
    let old: Value = rbuilder_yaml::parse(text).map_err(|error| describe_failure(path, text, &error))?;
    let is_old = ["2", "3-alpha"].iter().any(|version| old["version"] == *version);
    if !is_old && old["version"] != 2 {
        return Ok(None);
    }
    let domain = old["domain"].as_str().unwrap_or_default();
    let resources = old["resources"].as_array().into_iter().flatten();
    // Skip entries without a kind, e.g. from a manual edit.
    let is_whole = |resource: &&Value| ["kind", "version"].iter().all(|key| resource[key].is_string());
    let resources: Vec<Value> = resources
        .filter(is_whole)
        .map(|resource| {
            json!({
                "api": { "crdVersion": "v1", "namespaced": true },
                "domain": domain,
                "group": resource["group"].as_str().unwrap_or_default(),
                "kind": resource["kind"],
                "version": resource["version"],
            })
        })
        .collect();
    let mut project = json!({
        "layout": ["go.kubebuilder.io/v2"],
        "projectName": name_of(&read_repo(tree, text)?, tree),
        "resources": resources,
        "version": "3",
    });
    for key in ["domain", "layout", "multigroup", "projectName", "repo"] {
        if !old[key].is_null() {
            project[key] = old[key].clone();
        }
    }
    Ok(Some(project.to_string()))
}

/// Last segment of the module path, or the directory name without a module.
fn name_of(repo: &str, tree: &Tree) -> String {
    let is_major = |word: &&str| {
        word.strip_prefix('v')
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut words = repo.rsplit('/').filter(|word| !is_major(word));
    match words.next().filter(|word| !word.is_empty()) {
        Some(word) => word.to_lowercase(),
        None => tree.folder_name().unwrap_or_default().to_lowercase(),
    }
}
