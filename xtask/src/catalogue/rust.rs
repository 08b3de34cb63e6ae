//! Determines which types are in k8s-openapi. All these must also be in the catalogue.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rbuilder_catalogue::Minor;
use rbuilder_catalogue::write::Types;
use rbuilder_schema::is_known;

use crate::committed::list_files;
use crate::packages::read_metadata;
use crate::value::{items, text};

/// Generic types in k8s-openapi. They have no schema, and are never used for a field of a kind.
const GENERIC: &[&str] = &["List", "apimachinery::pkg::apis::meta::v1::WatchEvent"];

/// Returns the types that are also in k8s-openapi.
///
/// Note that the documents have a list type for every kind. k8s-openapi has a generic `List`
/// instead.
pub(crate) fn select_types(minor: Minor, mut types: Types) -> Result<Types> {
    let paths = paths(minor)?;
    let missing: Vec<&String> = paths
        .iter()
        .filter(|path| !types.contains_key(*path) && !is_known(&format!("k8s_openapi::{path}")))
        .collect();
    ensure!(
        missing.is_empty(),
        "k8s-openapi has types that no document defines: {missing:?}"
    );
    let strange: Vec<&String> = types
        .keys()
        .filter(|path| !paths.contains(*path) && !path.ends_with("List") && !GENERIC.contains(&path.as_str()))
        .collect();
    ensure!(
        strange.is_empty(),
        "k8s-openapi lacks types that the documents define: {strange:?}"
    );
    types.retain(|path, _| paths.contains(path));
    Ok(types)
}

/// Returns the paths of all types in k8s-openapi for a minor version. We just list the source
/// files, since there is one for each type.
fn paths(minor: Minor) -> Result<BTreeSet<String>> {
    let root = source()?.join(format!("src/v1_{}", minor.number()));
    let mut paths = BTreeSet::new();
    for path in list_files(&root, "rs")?
        .iter()
        .filter(|path| !path.ends_with("mod.rs"))
    {
        let source = fs_err::read_to_string(path)?;
        let folder = path.parent().context("a file is in a folder")?;
        let module = folder
            .strip_prefix(&root)?
            .to_string_lossy()
            .replace(['/', '\\'], "::");
        let names = source.lines().filter_map(declared);
        paths.extend(names.map(|name| format!("{module}::{name}").trim_start_matches("::").to_owned()));
    }
    ensure!(
        paths.len() > 500,
        "only {} types in {}",
        paths.len(),
        root.display()
    );
    paths.retain(|path| !GENERIC.contains(&path.as_str()));
    Ok(paths)
}

fn declared(line: &str) -> Option<&str> {
    let rest = ["pub struct ", "pub enum ", "pub type "]
        .iter()
        .find_map(|start| line.strip_prefix(start))?;
    rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .next()
}

fn source() -> Result<PathBuf> {
    let metadata = read_metadata(&["--locked"])?;
    let package = items(&metadata, "/packages").find(|package| package["name"] == "k8s-openapi");
    let package = package.context("the workspace does not use k8s-openapi")?;
    let folder = Path::new(text(package, "/manifest_path")).parent();
    folder.map(Path::to_owned).context("a manifest has no folder")
}
