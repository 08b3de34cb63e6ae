//! The samples of the original.

use anyhow::Result;
use serde_json::Value;

use super::compose::Composed;
use super::kinds::Leftover;
use crate::edit::kustomization;
use crate::go_project::{GoProject, Manifests};

const FOLDER: &str = "config/samples/";
const LIST: &str = "config/samples/kustomization.yaml";

/// Takes the samples over: each in the place of the scaffolded one of its version, others beside them.
///
/// A sample without fields in its spec, as kubebuilder scaffolds it, does not replace one that has what the schema requires.
pub(super) fn port(original: &GoProject, composed: &mut Composed<'_>) -> Result<()> {
    let resources = composed.project.known.resources.clone();
    let scaffolded: Vec<(String, String, String)> = resources
        .iter()
        .filter(|resource| resource.api.is_some())
        .map(|resource| {
            let api = composed.places(resource).context();
            (api.api_version, api.kind, api.sample_file)
        })
        .collect();
    let samples = original
        .manifests
        .iter()
        .filter(|file| file.path.starts_with(FOLDER) && file.path != LIST);
    for file in samples {
        let own = match file.documents.as_slice() {
            [document] => scaffolded.iter().find(|(version, kind, path)| {
                document["apiVersion"] == version.as_str()
                    && document["kind"] == kind.as_str()
                    && is_same_file(&file.path, path)
            }),
            _ => None,
        };
        match own {
            Some((_, kind, path)) if is_empty(&file.documents[0]) => {
                let what = format!("sample of `{kind}`");
                composed.better.push(Leftover::new(
                    what,
                    format!(
                        "{} has no fields; {path} has those that the schema requires",
                        file.path
                    ),
                ));
            }
            Some((_, _, path)) => {
                composed.files.insert(path.clone(), with_newline(&file.text));
            }
            None => add_file(file, composed)?,
        }
    }
    Ok(())
}

fn is_same_file(theirs: &str, ours: &str) -> bool {
    theirs == ours
        || theirs
            .strip_suffix(".yml")
            .is_some_and(|name| ours.strip_suffix(".yaml") == Some(name))
}

fn is_empty(sample: &Value) -> bool {
    let spec = &sample["spec"];
    spec.is_null() || spec.as_object().is_some_and(serde_json::Map::is_empty)
}

fn with_newline(text: &str) -> String {
    format!("{}\n", text.trim_end())
}

/// Adds a file that the scaffold has not.
fn add_file(file: &Manifests, composed: &mut Composed<'_>) -> Result<()> {
    let is_kustomization = file.path.ends_with("/kustomization.yaml");
    let has_objects = file.documents.iter().any(|document| document["kind"].is_string());
    if composed.files.contains_key(&file.path) || is_kustomization || !has_objects {
        return Ok(());
    }
    let name = file.path.strip_prefix(FOLDER).unwrap_or(&file.path).to_owned();
    composed.files.insert(file.path.clone(), with_newline(&file.text));
    if let Some(list) = composed.files.get(LIST)
        && let Ok(list) = kustomization::add_resource(list, &name)
    {
        composed.files.insert(LIST.to_owned(), list);
    }
    Ok(())
}
