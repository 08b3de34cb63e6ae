//! Checks everything that is visible to users, e.g. our packages, their features, the minimum
//! version of Rust, and the public API.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Context;
use crate::packages::{name_of, published_packages, read_metadata};
use crate::sh::Cmd;
use crate::value::{items, text};
use crate::{repo, tools};

const FILES: [&str; 3] = ["Cargo.toml", "LICENSE", "README.md"];

/// Keys in Cargo.toml displayed by registries.
const METADATA: [&str; 4] = ["description", "keywords", "categories", "license"];

/// Packages that can only be used along with another package. We check the two together. They then
/// have the same features of the dependencies, and kube and k8s-openapi are only checked once.
const COMPANIONS: [(&str, &str); 1] = [("rbuilder-testing", "rbuilder-runtime")];

/// The test for CPU profiles, which is not part of the step `tests`. This is because the packages
/// for profiles enable a feature of libc, and everything that depends on libc would have to be
/// compiled twice.
const PROFILE_TEST: &str =
    "cargo test --quiet --workspace --features rbuilder-runtime/profiling --test metrics profile::";

/// Checks the published packages: each must contain its metadata, its license and a README.
pub(super) fn check_packages(context: &Context<'_>) -> Result<()> {
    let mut lacks = Vec::new();
    for package in published_packages()? {
        let name = name_of(&package)?;
        for key in METADATA {
            if [Value::Null, json!(""), json!([])].contains(&package[key]) {
                lacks.push(format!("{name} has no `{key}` in its Cargo.toml"));
            }
        }
        let list = context.command("cargo package --quiet --list --allow-dirty --package");
        let list = list.arg(name).read()?;
        for file in FILES {
            if !list.lines().any(|line| line == file) {
                lacks.push(format!("{name} is packaged without {file}"));
            }
        }
    }
    ensure!(lacks.is_empty(), "{}", lacks.join("\n"));
    context.say("each package has its metadata, its licence and a README");
    Ok(())
}

/// Checks that all features of all libraries can be compiled on their own, and that intra-doc links
/// can be resolved if no features are enabled. This also runs the test for CPU profiles, because
/// there's no other step that enables the feature.
pub(super) fn check_features(context: &Context<'_>) -> Result<()> {
    for package in published_packages()? {
        let name = name_of(&package)?;
        let features = package["features"]
            .as_object()
            .context("a package has no features")?;
        if features.is_empty() {
            continue;
        }
        let names = features
            .keys()
            .map(String::as_str)
            .filter(|feature| *feature != "default");
        let companion = COMPANIONS.iter().find(|(package, _)| *package == name);
        for feature in std::iter::once("").chain(names) {
            let mut command = context
                .command("cargo clippy --quiet --lib --no-default-features --package")
                .arg(name);
            if let Some((_, companion)) = companion {
                command = command.args(["--package", companion]);
            }
            if !feature.is_empty() {
                command = command.args(["--features", &format!("{name}/{feature}")]);
            }
            context.run_command(command.args(["--", "--deny", "warnings"]))?;
        }
    }
    let document =
        context.command("cargo doc --quiet --no-deps --no-default-features --package rbuilder-runtime");
    context.run_command(document.env("RUSTDOCFLAGS", "--deny warnings"))?;
    context.run_command(context.command(PROFILE_TEST))
}

/// Checks that no dependency needs a newer Rust than we claim to support. If rustup has installed
/// that version of Rust, also checks that everything compiles with it.
pub(super) fn check_minimum_rust(context: &Context<'_>) -> Result<()> {
    let metadata = read_metadata(&["--locked"])?;
    let mut packages = items(&metadata, "/packages");
    let versions = packages
        .clone()
        .map(|package| (text(package, "/name"), text(package, "/rust_version")));
    let ours = packages.find(|package| package["name"] == "rbuilder-runtime");
    let ours = ours.and_then(|package| package["rust_version"].as_str());
    let ours = ours.context("the library names no Rust version")?;
    let newer: Vec<_> = versions
        .filter(|(_, version)| version_numbers(version) > version_numbers(ours))
        .map(|(name, version)| format!("{name} needs Rust {version}"))
        .collect();
    ensure!(
        newer.is_empty(),
        "Cargo.toml promises Rust {ours}: {}",
        newer.join(", ")
    );
    context.say(&format!("no dependency asks for more than Rust {ours}"));

    let cargo = |line: &str| Cmd::new(&format!("rustup run {ours} cargo {line}")).dir(repo::root());
    if !cargo("--version").succeeds() {
        // In workflows, this version is installed before the step. On other machines it might not
        // be available, so we skip the build.
        ensure!(
            std::env::var_os("GITHUB_ACTIONS").is_none(),
            "rustup has no Rust {ours}: `rustup toolchain install {ours} --profile minimal`"
        );
        context.say(&format!(
            "rustup has no Rust {ours} on this machine: nothing was compiled with it"
        ));
        return Ok(());
    }
    // If we used the same target folder, switching between the versions of Rust would rebuild
    // everything.
    let target = repo::target_folder().join("minimum-rust");
    context.run_command(cargo("check --workspace --all-targets").env("CARGO_TARGET_DIR", target))
}

/// Splits a version into its numbers, which can be compared. If there are less than three, the
/// others are 0.
fn version_numbers(version: &str) -> [u64; 3] {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or_default());
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

pub(super) fn check_public_api(context: &Context<'_>) -> Result<()> {
    let tags = context
        .command("git tag --list v* --merged HEAD --sort=-version:refname")
        .read()?;
    let Some(tag) = tags.lines().next() else {
        context.say("there is no tag `v…` to compare with: the public API is free until the first release");
        return Ok(());
    };
    let checks = Cmd::program(tools::ensure_tool("cargo-semver-checks")?)
        .words("semver-checks --workspace --baseline-rev")
        .arg(tag);
    context.run_command(checks.dir(repo::root()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_versions_numerically() {
        assert!(version_numbers("1.89") == version_numbers("1.89.0"));
        assert!(version_numbers("1.89") < version_numbers("1.89.1"));
        assert!(version_numbers("1.89") < version_numbers("1.100"));
        assert!(version_numbers("1.9") < version_numbers("1.89"));
    }
}
