//! Reads files of the operator under test from the paths where `rbuilder` writes them, relative to
//! the package root, in which tests run.

use std::path::Path;

use kube::{CustomResourceExt, Resource};
use rbuilder_judge::{fill_defaults, read_schema};
use rbuilder_kubernetes::crd::Crd;
use rbuilder_schema::Schema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::assert_crd_matches;

const SAMPLES: &str = "config/samples";
const BASES: &str = "config/crd/bases";

/// Returns the sample of a kind: the first object (by file name) with its API version and kind in
/// `config/samples/`.
///
/// Absent fields are defaulted according to the CRD in `config/crd/bases/`, as in an object read
/// from a cluster. Without a CRD for the kind, no defaults are set.
///
/// # Panics
///
/// Panics if there is no sample, if the sample can't be deserialized, or if the CRD can't be read.
#[track_caller]
pub fn sample<K>() -> K
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    sample_in(Path::new("."))
}

#[track_caller]
fn sample_in<K>(package: &Path) -> K
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let (api_version, kind) = (K::api_version(&()), K::kind(&()));
    for (path, text) in read_samples(&package.join(SAMPLES)) {
        // The directory also contains samples of other kinds and a `kustomization.yaml`.
        let objects = serde_saphyr::from_multiple::<Value>(&text)
            .unwrap_or_else(|error| panic!("failed to parse {path}: {error}"));
        let is_wanted = |object: &Value| object["apiVersion"] == *api_version && object["kind"] == *kind;
        if let Some(mut object) = objects.into_iter().find(is_wanted) {
            if let Some(schema) = read_generated_schema::<K>(package) {
                fill_defaults(&mut object, &schema);
            }
            return serde_json::from_value(object)
                .unwrap_or_else(|error| panic!("{path} does not deserialize as {kind}: {error}"));
        }
    }
    panic!("expected a {kind} of {api_version} in {SAMPLES}/, found none");
}

#[track_caller]
fn read_generated_schema<K: Resource<DynamicType = ()>>(package: &Path) -> Option<Schema> {
    let path = generated_crd_path(&K::group(&()), &K::plural(&()));
    // Not an error: there are no CRDs for foreign kinds.
    let text = std::fs::read_to_string(package.join(&path)).ok()?;
    let crd: Value =
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("failed to parse {path}: {error}"));
    let version = Crd::of(&crd).version(&K::version(&()))?;
    let schema = read_schema(version.schema())
        .unwrap_or_else(|error| panic!("failed to read the schema in {path}: {error}"));
    Some(schema)
}

fn generated_crd_path(group: &str, plural: &str) -> String {
    format!("{BASES}/{group}_{plural}.yaml")
}

/// Asserts that a compiled CRD equals the one in `config/crd/bases/`. See [`assert_crd_matches`].
///
/// # Panics
///
/// Panics if they differ, or if the file can't be read.
#[track_caller]
pub fn assert_generated_crd_matches<K: CustomResourceExt>() {
    let compiled = K::crd();
    let (group, plural) = (&compiled.spec.group, &compiled.spec.names.plural);
    let path = generated_crd_path(group, plural);
    let manifest = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("failed to read {path}: {error}; run `rbuilder manifests`"));
    assert_crd_matches(&compiled, &manifest);
}

#[track_caller]
fn read_samples(folder: &Path) -> Vec<(String, String)> {
    let failed =
        |path: &Path, error: std::io::Error| -> ! { panic!("failed to read {}: {error}", path.display()) };
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

#[cfg(test)]
mod tests {
    use std::fs;

    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(CustomResource, Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
    #[kube(group = "cache.example.com", version = "v1", kind = "Memcached", namespaced)]
    struct MemcachedSpec {
        size: i32,
    }

    const CRD: &str = "
spec:
  versions:
  - name: v1alpha1
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 3}
";

    fn sample_size(spec: &str, crd: Option<&str>) -> i32 {
        let package = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = package.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let sample = format!(
            "apiVersion: cache.example.com/v1\nkind: Memcached\nmetadata:\n  name: sample\nspec: {spec}\n"
        );
        write("config/samples/cache_v1_memcached.yaml", &sample);
        if let Some(crd) = crd {
            write("config/crd/bases/cache.example.com_memcacheds.yaml", crd);
        }
        sample_in::<Memcached>(package.path()).spec.size
    }

    #[test]
    fn sample_has_defaults_of_generated_crd() {
        assert_eq!(sample_size("{}", Some(CRD)), 3);
        assert_eq!(sample_size("{size: 5}", Some(CRD)), 5);
        assert_eq!(sample_size("{size: 5}", None), 5);
    }

    #[test]
    #[should_panic(expected = "does not deserialize as Memcached: missing field `size`")]
    fn sample_without_crd_has_no_defaults() {
        sample_size("{}", None);
    }
}
