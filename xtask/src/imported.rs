//! A `cargo xtask scaffold` journey through CRDs that controller-gen generates from the types in
//! testdata/oracle/go. A project imports them with `create api --from-crd`. It must compile,
//! regenerate the CRDs, reconcile the samples, and preserve all fields of objects that match the
//! schemas.
//!
//! The importer's tests only compare schemas. This journey uses rustc and serde to test whether the
//! types accept everything that the schemas allow.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::project::share_lockfile;
use crate::repo;

/// The name of the project.
pub(crate) const NAME: &str = "imported-operator";

/// CRDs that are skipped: one whose module would be named after a Rust keyword, which `create api`
/// rejects, and CRDs that only differ from others in their names.
const LEFT_OUT: &[&str] = &[
    "oracle.example.com_enums.yaml",
    "oracle.example.com_gateways.yaml",
    "oracle.example.com_httproutes.yaml",
    "oracle.example.com_ingresses.yaml",
    "oracle.example.com_proxies.yaml",
    "oracle.example.com_testquotas.yaml",
];

/// Kinds for which `RandomObjects` cannot generate valid objects: one never matches its schema, and
/// the others contain k8s-openapi types that serialize quantities as strings or require a certain
/// `kind`.
const NOT_AT_RANDOM: &[&str] = &["Bound", "Kubernetes", "Workload"];

/// The test for a kind whose sample violates CEL rules. The sample generator does not evaluate CEL.
const REFUSED_SAMPLE: &str = "tests/rule.rs";

/// A test that is added for every version of every kind.
const ROUND_TRIP: &str = r#"//! Objects that the API server stores are the same after a way through the types.

use imported_operator::api;
use kube::{CustomResourceExt, Resource};
use rbuilder::testing::RandomObjects;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn check<K>()
where
    K: CustomResourceExt + Resource<DynamicType = ()> + DeserializeOwned + Serialize,
{
    let objects = RandomObjects::new(&K::crd(), &K::version(&()));
    for object in objects.iter(200) {
        let typed: K = serde_json::from_value(object.clone())
            .unwrap_or_else(|error| panic!("{error}: {object:#}"));
        let written = serde_json::to_value(typed).unwrap();
        let written = objects.admit(written).unwrap();
        assert_eq!(normalize(written), normalize(object));
    }
}

/// A field that is null and one that is absent are the same for an `Option`, and a `Time` has no fraction of seconds.
fn normalize(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name, normalize(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(normalize).collect(),
        Value::String(text) => text.replace(".123456Z", "Z").into(),
        value => value,
    }
}
"#;

/// Creates a project from the CRDs and adds a test with random objects for each version of each
/// kind.
///
/// # Errors
///
/// Returns an error if a CRD is rejected or a file cannot be read or written.
pub(crate) fn import_definitions(bin: &Path, folder: &Path, fresh: bool) -> Result<()> {
    repo::rbuilder_command(bin, folder, "init --domain example.com")?
        .echo()
        .run()?;
    if !fresh {
        share_lockfile(folder)?;
    }
    let mut round_trip = ROUND_TRIP.to_owned();
    for path in list_definitions()? {
        let from = path.to_str().context("a path is not UTF-8")?;
        let create = repo::rbuilder_command(bin, folder, "create api --from-crd")?;
        create.arg(from).read()?;
        let definition: Value = serde_saphyr::from_str(&fs_err::read_to_string(&path)?)?;
        add_round_trips(&mut round_trip, &definition)?;
    }
    fs_err::write(folder.join("tests/round_trip.rs"), round_trip)?;
    fs_err::remove_file(folder.join(REFUSED_SAMPLE))?;
    Ok(())
}

/// Adds a test for each version of a kind.
fn add_round_trips(tests: &mut String, definition: &Value) -> Result<()> {
    let spec = &definition["spec"];
    let kind = spec["names"]["kind"].as_str().context("a CRD has no kind")?;
    if NOT_AT_RANDOM.contains(&kind) {
        return Ok(());
    }
    for version in spec["versions"].as_array().into_iter().flatten() {
        let version = version["name"].as_str().context("a version has no name")?;
        let name = format!("{kind}_{version}").to_lowercase();
        write!(
            tests,
            "\n#[test]\nfn {name}() {{\n    check::<api::{version}::{kind}>();\n}}\n"
        )?;
    }
    Ok(())
}

/// Returns the paths of the recorded CRDs that are not skipped.
fn list_definitions() -> Result<Vec<PathBuf>> {
    let entries = fs_err::read_dir(repo::root().join("testdata/oracle/recorded/crd"))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    paths.retain(|path| !LEFT_OUT.iter().any(|name| path.ends_with(name)));
    paths.sort();
    Ok(paths)
}
