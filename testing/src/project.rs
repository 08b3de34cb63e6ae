//! Files of the operator under test, at the places where `rbuilder` writes them. A test runs in the folder of its package.

use std::path::Path;

use kube::{CustomResourceExt, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::assert_crd_matches;

/// Folder of the samples.
const SAMPLES: &str = "config/samples";
/// Folder of the generated CRDs.
const BASES: &str = "config/crd/bases";

/// Returns the sample of a kind: the first object of its API version and kind in `config/samples/`, by file name.
///
/// # Panics
/// When there is none, or it does not deserialize.
#[track_caller]
pub fn sample<K>() -> K
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let wanted = (K::api_version(&()).into_owned(), K::kind(&()).into_owned());
    for (path, text) in read_samples() {
        // A kustomization is one of the files, and so may be samples of other kinds.
        let objects = serde_saphyr::from_multiple::<Value>(&text)
            .unwrap_or_else(|error| panic!("failed to parse {path}: {error}"));
        let is_wanted = |object: &Value| object["apiVersion"] == wanted.0 && object["kind"] == wanted.1;
        if let Some(object) = objects.into_iter().find(is_wanted) {
            return serde_json::from_value(object)
                .unwrap_or_else(|error| panic!("{path} does not deserialize as {}: {error}", wanted.1));
        }
    }
    panic!(
        "expected a {} of {} in {SAMPLES}/, found none",
        wanted.1, wanted.0
    );
}

/// Asserts that a kind as compiled and its CRD in `config/crd/bases/` are equal; see [`assert_crd_matches`].
///
/// # Panics
/// When they differ, or the file cannot be read.
#[track_caller]
pub fn assert_generated_crd_matches<K: CustomResourceExt>() {
    let compiled = K::crd();
    let (group, plural) = (&compiled.spec.group, &compiled.spec.names.plural);
    let path = format!("{BASES}/{group}_{plural}.yaml");
    let manifest = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("failed to read {path}: {error}; run `rbuilder manifests`"));
    assert_crd_matches(&compiled, &manifest);
}

/// Returns the YAML files in the folder of samples with their paths, by name.
#[track_caller]
fn read_samples() -> Vec<(String, String)> {
    let failed =
        |path: &Path, error: std::io::Error| -> ! { panic!("failed to read {}: {error}", path.display()) };
    let folder = Path::new(SAMPLES);
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| failed(folder, error));
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "yaml" || end == "yml"));
    paths.sort();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_else(|error| failed(path, error));
    paths
        .iter()
        .map(|path| (path.display().to_string(), read(path)))
        .collect()
}
