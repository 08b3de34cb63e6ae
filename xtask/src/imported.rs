//! Imports the CRDs that controller-gen generates for the types in testdata/oracle/go. This is a
//! journey of `cargo xtask scaffold`.
//!
//! The project runs `create api --from-crd` for each CRD. It must then compile, regenerate the CRDs
//! and reconcile the samples. It also mustn't lose any field of an object that matches the schema.
//!
//! There are already tests for the importer which compare the schemas. Here we use rustc and serde
//! to find out whether the types really accept what is allowed by the schemas.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::committed::list_folder;
use crate::project::share_lockfile;
use crate::repo;
use crate::value::items;

pub(crate) const NAME: &str = "imported-operator";

/// CRDs that we have to skip. For one of them, `create api` would return an error because its
/// module would be called like a keyword of Rust. Others are the same as another CRD except for
/// their names.
const LEFT_OUT: &[&str] = &[
    "oracle.example.com_enums.yaml",
    "oracle.example.com_gateways.yaml",
    "oracle.example.com_httproutes.yaml",
    "oracle.example.com_ingresses.yaml",
    "oracle.example.com_proxies.yaml",
    "oracle.example.com_testquotas.yaml",
];

/// Kinds for which `RandomObjects` can't generate valid objects. There's one whose objects can
/// never be valid. The others have types of k8s-openapi which serialize quantities as strings, or
/// which need a specific `kind`.
const NOT_AT_RANDOM: &[&str] = &["Bound", "Kubernetes", "Workload"];

/// Test of a kind whose sample isn't valid, because CEL rules are not evaluated when the sample is
/// generated.
const REFUSED_SAMPLE: &str = "tests/rule.rs";

/// This test is added for each version of a kind.
const ROUND_TRIP: &str = include_str!("imported_round_trip.rs.in");

/// Creates a project from the CRDs. For each version of each kind, it gets a test with random
/// objects.
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

fn add_round_trips(tests: &mut String, definition: &Value) -> Result<()> {
    let spec = &definition["spec"];
    let kind = spec["names"]["kind"].as_str().context("a CRD has no kind")?;
    if NOT_AT_RANDOM.contains(&kind) {
        return Ok(());
    }
    for version in items(spec, "/versions") {
        let version = version["name"].as_str().context("a version has no name")?;
        let name = format!("{kind}_{version}").to_lowercase();
        write!(
            tests,
            "\n#[test]\nfn {name}() {{\n    check::<api::{version}::{kind}>();\n}}\n"
        )?;
    }
    Ok(())
}

/// Returns the paths of all recorded CRDs, but not those that we have to skip.
fn list_definitions() -> Result<Vec<PathBuf>> {
    let mut paths = list_folder(&repo::root().join("testdata/oracle/recorded/crd"))?;
    paths.retain(|path| !LEFT_OUT.iter().any(|name| path.ends_with(name)));
    Ok(paths)
}
