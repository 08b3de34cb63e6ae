//! Places in this repository, and the `rbuilder` command built from it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::sh::Cmd;

/// Returns the root of the checkout that this binary was built from.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("xtask/base/ stands two folders below the root of the workspace")
}

/// Builds the `rbuilder` command and returns the folder that holds it, to be put in front of `PATH`.
///
/// # Errors
///
/// The build failed, or cargo did not say where it put the binary.
pub fn build_rbuilder() -> Result<PathBuf> {
    // With an example, so that the dependencies have the features that tests need as well.
    build_command(build_in_workspace().args(["--example", "servers"]))
}

/// Builds an example and returns the program.
///
/// # Errors
///
/// As [`build_rbuilder`].
pub fn build_example(name: &str) -> Result<PathBuf> {
    build(build_in_workspace().args(["--example", name]), name)
}

/// A build whose dependencies have the features that they have in `cargo test --workspace`, so that it uses what that has
/// compiled: for one package alone they have fewer, and serde, k8s-openapi and kube would be compiled once more.
fn build_in_workspace() -> Cmd {
    Cmd::new("cargo build --quiet --profile dev --workspace")
}

/// Builds the command without `rbuilder dev` and `rbuilder envtest`, whose dependencies are a quarter of a build, and
/// shows cargo's progress.
///
/// # Errors
///
/// As [`build_rbuilder`].
pub fn build_small_rbuilder_in_view() -> Result<PathBuf> {
    let build = Cmd::new("cargo build --profile dev --no-default-features --package rbuilder-cli");
    // What only a second build needs is an eighth of this one.
    build_command(build.env("CARGO_INCREMENTAL", "0"))
}

/// Builds the same as the binaries of a release are built.
///
/// # Errors
///
/// As [`build_rbuilder`].
pub fn build_rbuilder_dist() -> Result<PathBuf> {
    build_command(Cmd::new(
        "cargo build --quiet --profile dist --package rbuilder-cli",
    ))
}

/// Builds the command and returns its folder.
fn build_command(build_it: Cmd) -> Result<PathBuf> {
    let binary = build(build_it.words("--bin rbuilder"), "rbuilder")?;
    let folder = binary.parent().context("the binary has no folder")?;
    Ok(folder.to_owned())
}

/// Runs a build and returns the program of this name.
fn build(command: Cmd, name: &str) -> Result<PathBuf> {
    let messages = command
        .words("--message-format=json-render-diagnostics")
        .dir(root())
        .read()?;
    messages
        .lines()
        .filter_map(executable)
        .find(|program| program.file_stem().is_some_and(|stem| stem == name))
        .with_context(|| format!("cargo built no program named `{name}`"))
}

/// The value of `"executable":"…"` in one of cargo's JSON messages.
///
/// Paths that JSON must escape are none of this repository's targets, so no JSON parser is needed.
fn executable(message: &str) -> Option<PathBuf> {
    let (_, rest) = message.split_once(r#""executable":""#)?;
    let (path, _) = rest.split_once('"')?;
    Some(PathBuf::from(path))
}

/// Returns the folder that cargo builds the workspace into.
pub fn target_folder() -> PathBuf {
    let asked = std::env::var_os("CARGO_TARGET_DIR").map(|folder| root().join(folder));
    asked.unwrap_or_else(|| root().join("target"))
}

/// Returns the folder that all projects outside of the workspace compile into: their dependencies are compiled once, together.
pub fn project_build_folder() -> PathBuf {
    match std::env::var_os("RBUILDER_SCAFFOLD_BUILD_DIR") {
        Some(folder) => folder.into(),
        None => target_folder().join("scaffold"),
    }
}

/// A `rbuilder` command in a folder, without that word; `bin` is the folder of the program.
///
/// # Errors
///
/// `PATH` cannot be extended.
pub fn rbuilder_command(bin: &Path, folder: &Path, line: &str) -> Result<Cmd> {
    Cmd::new(&format!("rbuilder {line}")).dir(folder).path_first(bin)
}

/// A command in a project that is a workspace of its own, as its user runs it: the Kubernetes version comes from the
/// project, not from this workspace's .cargo/config.toml.
///
/// What is compiled lies in [`project_build_folder`], but the programs of each project in a folder of its own: all are named
/// `manager`, and a test that starts that of its project must not find another's. Cargo before 1.91 does not know the
/// variable, and compiles the dependencies for each project.
pub fn project_command(folder: &Path, line: &str) -> Cmd {
    let build = project_build_folder();
    let name = folder.file_name().unwrap_or_default();
    Cmd::new(line)
        .dir(folder)
        .env("CARGO_TARGET_DIR", build.join("projects").join(name))
        .env("CARGO_BUILD_BUILD_DIR", build)
        .env(KUBERNETES, project_kubernetes(folder))
}

/// The variable with the version of Kubernetes for k8s-openapi, if no feature selects one.
pub const KUBERNETES: &str = "K8S_OPENAPI_ENABLED_VERSION";

/// Returns the version of this workspace's .cargo/config.toml, which a project is scaffolded with as well. Cargo sets it where
/// this program is started by `cargo xtask`; empty elsewhere.
pub fn default_kubernetes() -> String {
    std::env::var(KUBERNETES).unwrap_or_default()
}

/// Returns the value of [`KUBERNETES`] for a project.
///
/// A project selects its version with a feature. The variable says the same if that is the version of this workspace: the
/// build script of k8s-openapi runs again where the variable changes, so each would compile it, and kube with it, after the
/// other. It is empty for another version, rather than absent, so that what depends on it is built once whoever asks.
fn project_kubernetes(folder: &Path) -> String {
    let version = default_kubernetes();
    let feature = format!("\"v{}\"", version.replace('.', "_"));
    let manifest = fs_err::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    if manifest.contains(&feature) {
        version
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_executable_in_a_message() {
        let check = |message: &str, expected: Option<&str>| {
            assert_eq!(executable(message), expected.map(PathBuf::from), "{message}");
        };
        check(
            r#"{"reason":"compiler-artifact","executable":"/t/debug/rbuilder","fresh":true}"#,
            Some("/t/debug/rbuilder"),
        );
        check(
            r#"{"reason":"compiler-artifact","executable":null,"fresh":true}"#,
            None,
        );
        check("", None);
    }
}
