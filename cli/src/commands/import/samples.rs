//! The samples of the original.

use anyhow::Result;
use serde_json::Value;

use super::compose::Composed;
use super::kinds::Leftover;
use crate::edit::kustomization;
use crate::go_project::{GoProject, Manifests};

const FOLDER: &str = "config/samples/";
const LIST: &str = "config/samples/kustomization.yaml";

/// The sample of a version that the scaffold makes.
struct Scaffolded {
    api_version: String,
    kind: String,
    path: String,
}

/// Takes the samples over: each in the place of the scaffolded one of its version, others beside them.
///
/// A sample without fields in its spec, as kubebuilder scaffolds it, does not replace one that has what the schema requires.
pub(super) fn port(original: &GoProject, composed: &mut Composed<'_>) -> Result<()> {
    let resources = composed.project.known.resources.clone();
    let scaffolded: Vec<Scaffolded> = resources
        .iter()
        .filter(|resource| resource.api.is_some())
        .map(|resource| {
            let api = composed.places(resource).context();
            Scaffolded {
                api_version: api.api_version,
                kind: api.kind,
                path: api.sample_file,
            }
        })
        .collect();
    let samples: Vec<&Manifests> = original
        .manifests
        .iter()
        .filter(|file| file.path.starts_with(FOLDER) && file.path != LIST)
        .collect();
    let taken: Vec<(&str, &Scaffolded)> = scaffolded
        .iter()
        .filter_map(|place| Some((find_sample(place, &samples)?.path.as_str(), place)))
        .collect();
    for file in samples {
        match taken.iter().find(|(path, _)| *path == file.path) {
            Some((_, Scaffolded { kind, path, .. })) if file.documents.iter().all(is_empty) => {
                let reason = format!(
                    "{} has no fields; {path} has those that the schema requires",
                    file.path
                );
                composed
                    .better
                    .push(Leftover::new(format!("sample of `{kind}`"), reason));
            }
            Some((_, Scaffolded { path, .. })) => {
                composed.files.insert(path.clone(), with_newline(&file.text));
            }
            None => add_file(file, composed)?,
        }
    }
    Ok(())
}

/// Finds the sample of the original that takes the place of a scaffolded one: that of the same name, or else the first that has
/// fields.
fn find_sample<'a>(place: &Scaffolded, samples: &[&'a Manifests]) -> Option<&'a Manifests> {
    let is_of_version = |file: &&&Manifests| match file.documents.as_slice() {
        [document] => document["apiVersion"] == *place.api_version && document["kind"] == *place.kind,
        _ => false,
    };
    let of_version = || samples.iter().filter(is_of_version);
    let same = of_version().find(|file| is_same_file(&file.path, &place.path));
    let found = same.or_else(|| of_version().find(|file| !file.documents.iter().all(is_empty)));
    found.copied()
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
