//! Gets information about the packages of the workspace from cargo.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use xtask_base::repo;
use xtask_base::sh::Cmd;

use crate::value::read_json;

pub(crate) fn published_packages() -> Result<Vec<Value>> {
    let mut metadata = read_metadata(&["--no-deps"])?;
    let Value::Array(packages) = metadata["packages"].take() else {
        bail!("cargo lists no packages");
    };
    let is_published = |package: &Value| package["publish"].as_array().is_none_or(|to| !to.is_empty());
    Ok(packages.into_iter().filter(is_published).collect())
}

/// Runs `cargo metadata` in the workspace and returns its output.
pub(crate) fn read_metadata(arguments: &[&str]) -> Result<Value> {
    let metadata = Cmd::new("cargo metadata --format-version 1").args(arguments);
    read_json(metadata.dir(repo::root()))
}

pub(crate) fn name_of(package: &Value) -> Result<&str> {
    package["name"].as_str().context("a package has no name")
}
