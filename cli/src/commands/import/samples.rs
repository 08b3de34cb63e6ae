//! Ports the original's samples.

use anyhow::Result;
use rbuilder_yaml::read_documents;
use serde_json::Value;

use super::composed::Composed;
use super::kinds::Leftover;
use crate::edit::kustomization;
use crate::overlay::FILE_NAMES;
use rbuilder_go_project::{GoProject, Manifests};

const FOLDER: &str = "config/samples/";
const LIST: &str = "config/samples/kustomization.yaml";

struct Scaffolded {
    api_version: String,
    kind: String,
    path: String,
}

impl Scaffolded {
    fn describes(&self, object: &Value) -> bool {
        object["apiVersion"] == *self.api_version && object["kind"] == *self.kind
    }
}

/// Ports the samples. Each one replaces the scaffolded sample of its version; the rest is added
/// next to these.
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
    let samples = split_samples(original, &scaffolded);
    let taken: Vec<(&str, &Scaffolded)> = scaffolded
        .iter()
        .filter_map(|place| Some((find_sample(place, &samples)?.path.as_str(), place)))
        .collect();
    for file in &samples {
        match taken.iter().find(|(path, _)| *path == file.path) {
            // kubebuilder scaffolds samples with an empty spec. Ours has all required fields, so
            // keep it.
            Some((_, Scaffolded { kind, path, .. })) if file.documents.iter().all(is_empty) => {
                let reason = format!(
                    "that of the Go project has no fields, and {path} has those that the schema requires"
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

/// Splits files with samples. A file named like a scaffolded sample keeps a single object; the rest
/// goes to a file next to it.
fn split_samples(original: &GoProject, scaffolded: &[Scaffolded]) -> Vec<Manifests> {
    let all = original.manifests.iter();
    let files = all.filter(|file| file.path.starts_with(FOLDER) && file.path != LIST);
    let mut samples = Vec::new();
    for file in files {
        let place = scaffolded
            .iter()
            .find(|place| is_same_file(&file.path, &place.path));
        let mut documents = match place {
            Some(_) if file.documents.len() > 1 => read_documents(&file.path, &file.text).unwrap_or_default(),
            _ => Vec::new(),
        };
        let own = documents
            .iter()
            .position(|document| place.is_some_and(|place| place.describes(&document.value)));
        let Some(own) = own.map(|own| documents.remove(own)) else {
            samples.push(file.clone());
            continue;
        };
        let text = own.text.strip_prefix("---\n").unwrap_or(&own.text);
        samples.push(Manifests {
            path: file.path.clone(),
            place: file.place.clone(),
            text: text.to_owned(),
            documents: vec![own.value],
        });
        let path = free_path(&file.path, |path| original.manifest(path).is_some());
        samples.push(Manifests {
            place: path.clone(),
            path,
            text: documents.iter().map(|document| document.text.as_str()).collect(),
            documents: documents.into_iter().map(|document| document.value).collect(),
        });
    }
    samples
}

/// An unused path next to another one, e.g. `a_2.yaml` for `a.yaml`.
fn free_path(path: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let (stem, ending) = path.rsplit_once('.').unwrap_or((path, "yaml"));
    let mut paths = (2..).map(|number| format!("{stem}_{number}.{ending}"));
    paths.find(|path| !is_taken(path)).unwrap_or_default()
}

/// Finds the original's sample that replaces a scaffolded one: the sample of the same name, or else
/// the first one with fields.
fn find_sample<'a>(place: &Scaffolded, samples: &'a [Manifests]) -> Option<&'a Manifests> {
    let is_of_version = |file: &&Manifests| match file.documents.as_slice() {
        [document] => place.describes(document),
        _ => false,
    };
    let of_version = || samples.iter().filter(is_of_version);
    let same = of_version().find(|file| is_same_file(&file.path, &place.path));
    same.or_else(|| of_version().find(|file| !file.documents.iter().all(is_empty)))
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

fn add_file(file: &Manifests, composed: &mut Composed<'_>) -> Result<()> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let is_kustomization = FILE_NAMES.contains(&name);
    let has_objects = file.documents.iter().any(|document| document["kind"].is_string());
    if is_kustomization || !has_objects {
        return Ok(());
    }
    let path = match composed.files.contains_key(&file.path) {
        true => free_path(&file.path, |path| composed.files.contains_key(path)),
        false => file.path.clone(),
    };
    let name = path.strip_prefix(FOLDER).unwrap_or(&path).to_owned();
    composed.files.insert(path, with_newline(&file.text));
    if let Some(list) = composed.files.get(LIST)
        && let Ok(list) = kustomization::add_resource(list, &name)
    {
        composed.files.insert(LIST.to_owned(), list);
    }
    Ok(())
}
