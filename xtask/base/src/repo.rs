//! Finds files in this repository, and builds the `rbuilder` command from it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::sh::Cmd;

/// Returns the root of the checkout from which this binary was built.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("xtask/base/ stands two folders below the root of the workspace")
}

/// Builds the `rbuilder` command and returns the folder with the binary. Callers should prepend it
/// to `PATH`.
pub fn build_rbuilder() -> Result<PathBuf> {
    // We also build an example, since that enables the dependency features needed by tests.
    build_command(build_in_workspace().args(["--example", "servers"]))
}

pub fn build_example(name: &str) -> Result<PathBuf> {
    build(build_in_workspace().args(["--example", name]), name)
}

/// Returns a build command that uses the same dependency features as `cargo test --workspace`, so
/// that it can reuse its artifacts. If we only built a single package, there would be fewer
/// features, and cargo would compile serde, k8s-openapi and kube again.
fn build_in_workspace() -> Cmd {
    Cmd::new("cargo build --quiet --profile dev --workspace")
}

/// Like [`build_rbuilder`], but without `rbuilder dev` and `rbuilder envtest` since a quarter of
/// the build time is for their dependencies. The progress of cargo is shown.
pub fn build_small_rbuilder_in_view() -> Result<PathBuf> {
    let build = Cmd::new("cargo build --profile dev --no-default-features --package rbuilder-cli");
    // Incremental compilation takes an eighth of the time here, and would only be useful if there
    // was a second build.
    build_command(build.env("CARGO_INCREMENTAL", "0"))
}

/// Builds the command with the same profile as our release binaries.
pub fn build_rbuilder_dist() -> Result<PathBuf> {
    build_command(Cmd::new(
        "cargo build --quiet --profile dist --package rbuilder-cli",
    ))
}

/// Builds the command with the given cargo command. Returns the folder that contains the binary.
fn build_command(build_it: Cmd) -> Result<PathBuf> {
    let binary = build(build_it.words("--bin rbuilder"), "rbuilder")?;
    let folder = binary.parent().context("the binary has no folder")?;
    Ok(folder.to_owned())
}

/// Runs a build and returns the path of the executable called `name`.
fn build(command: Cmd, name: &str) -> Result<PathBuf> {
    let is_it = |stem: &str| stem == name;
    find_executable(command.dir(root()), is_it).with_context(|| format!("`{name}` is missing"))
}

/// Builds an integration test of a project that is not part of our workspace. Returns the
/// path of the test binary.
pub fn build_project_test(folder: &Path, test: &str) -> Result<PathBuf> {
    let build = project_command(folder, "cargo test --quiet --no-run").args(["--test", test]);
    let start = format!("{test}-");
    find_executable(build, |stem| stem.starts_with(&start)).with_context(|| format!("`{test}` is missing"))
}

/// Runs a build and returns the path of an executable, which is chosen by its name.
fn find_executable(build: Cmd, is_it: impl Fn(&str) -> bool) -> Result<PathBuf> {
    let messages = build.words("--message-format=json-render-diagnostics").read()?;
    let mut programs = messages.lines().filter_map(executable);
    let found = programs.find(|program| {
        program
            .file_stem()
            .is_some_and(|stem| is_it(&stem.to_string_lossy()))
    });
    found.context("cargo built no such program")
}

/// Finds `"executable":"…"` in a JSON message from cargo and returns the path.
///
/// We can do this without a JSON parser, because the target paths of this repository don't contain
/// anything that must be escaped in JSON.
fn executable(message: &str) -> Option<PathBuf> {
    let (_, rest) = message.split_once(r#""executable":""#)?;
    let (path, _) = rest.split_once('"')?;
    Some(PathBuf::from(path))
}

pub fn target_folder() -> PathBuf {
    let asked = std::env::var_os("CARGO_TARGET_DIR").map(|folder| root().join(folder));
    asked.unwrap_or_else(|| root().join("target"))
}

/// Returns the build folder for projects outside the workspace. They all use the same one,
/// otherwise the dependencies would be compiled for each project.
pub fn project_build_folder() -> PathBuf {
    match std::env::var_os("RBUILDER_SCAFFOLD_BUILD_DIR") {
        Some(folder) => folder.into(),
        None => target_folder().join("scaffold"),
    }
}

/// Returns a command that runs `rbuilder` in a folder. The arguments are in `line`, and `bin` is
/// the binary's folder.
pub fn rbuilder_command(bin: &Path, folder: &Path, line: &str) -> Result<Cmd> {
    Cmd::new(&format!("rbuilder {line}")).dir(folder).path_first(bin)
}

/// Returns a command in a project that has its own workspace. The project determines the Kubernetes
/// version (as it does for users), and .cargo/config.toml of our workspace has no effect.
///
/// The artifacts are in [`project_build_folder`], but the programs of each project are kept in a
/// folder of their own. This is because all of them are called `manager`, and we don't want the
/// tests of a project to start the manager of another one. Note that cargo ignores the variable
/// before version 1.91, so it would compile the dependencies once per project.
pub fn project_command(folder: &Path, line: &str) -> Cmd {
    let build = project_build_folder();
    let name = folder.file_name().unwrap_or_default();
    Cmd::new(line)
        .dir(folder)
        .env("CARGO_TARGET_DIR", build.join("projects").join(name))
        .env("CARGO_BUILD_BUILD_DIR", build)
        .env(KUBERNETES, project_kubernetes(folder))
}

/// Name of the environment variable that selects the Kubernetes version in k8s-openapi, unless
/// there is a feature that does.
pub const KUBERNETES: &str = "K8S_OPENAPI_ENABLED_VERSION";

/// Returns the Kubernetes version from .cargo/config.toml of this workspace. Scaffolds use the same
/// version. Empty unless this program was started by `cargo xtask`, since it's cargo that sets the
/// variable.
pub fn default_kubernetes() -> String {
    std::env::var(KUBERNETES).unwrap_or_default()
}

/// Returns the value of [`KUBERNETES`] to use for a project.
///
/// Projects select the version with a feature, so the value should not matter. But the build script
/// of k8s-openapi reruns whenever the variable changes, which would recompile k8s-openapi and kube
/// each time we switch between the workspace and a project. To avoid this, we use the value of the
/// workspace if it's the same version. For any other version it is empty (instead of unset), which
/// means that the value does not depend on the caller.
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
    fn parses_executable_in_message() {
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
