//! Paths in this repository, and the `rbuilder` command built from it.

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

/// Builds the `rbuilder` command. Returns its folder, which callers prepend to `PATH`.
///
/// # Errors
///
/// Returns an error if the build fails or cargo does not report the path of the binary.
pub fn build_rbuilder() -> Result<PathBuf> {
    // Building an example as well enables the dependency features that tests use.
    build_command(build_in_workspace().args(["--example", "servers"]))
}

/// Builds an example and returns the path of the program.
///
/// # Errors
///
/// Same as [`build_rbuilder`].
pub fn build_example(name: &str) -> Result<PathBuf> {
    build(build_in_workspace().args(["--example", name]), name)
}

/// Returns a build with the same dependency features as `cargo test --workspace`, to reuse its
/// artifacts. Building a single package enables fewer features and would compile serde, k8s-openapi
/// and kube again.
fn build_in_workspace() -> Cmd {
    Cmd::new("cargo build --quiet --profile dev --workspace")
}

/// Builds the command without `rbuilder dev` and `rbuilder envtest`, whose dependencies take a
/// quarter of the build time, and shows the progress of cargo.
///
/// # Errors
///
/// Same as [`build_rbuilder`].
pub fn build_small_rbuilder_in_view() -> Result<PathBuf> {
    let build = Cmd::new("cargo build --profile dev --no-default-features --package rbuilder-cli");
    // Incremental compilation would only help a second build, and takes an eighth of this one.
    build_command(build.env("CARGO_INCREMENTAL", "0"))
}

/// Builds the command with the profile of release binaries.
///
/// # Errors
///
/// Same as [`build_rbuilder`].
pub fn build_rbuilder_dist() -> Result<PathBuf> {
    build_command(Cmd::new(
        "cargo build --quiet --profile dist --package rbuilder-cli",
    ))
}

/// Builds the command and returns the folder of the binary.
fn build_command(build_it: Cmd) -> Result<PathBuf> {
    let binary = build(build_it.words("--bin rbuilder"), "rbuilder")?;
    let folder = binary.parent().context("the binary has no folder")?;
    Ok(folder.to_owned())
}

/// Runs a build and returns the path of a program.
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

/// Builds a test of a project with its own workspace and returns the path of the program.
///
/// # Errors
///
/// Same as [`build_rbuilder`].
pub fn build_project_test(folder: &Path, test: &str) -> Result<PathBuf> {
    let build = project_command(folder, "cargo test --quiet --no-run");
    let build = build.args(["--test", test, "--message-format=json-render-diagnostics"]);
    let messages = build.read()?;
    let start = format!("{test}-");
    messages
        .lines()
        .filter_map(executable)
        .find(|program| {
            program
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(&start))
        })
        .with_context(|| format!("cargo built no test named `{test}`"))
}

/// Returns the value of `"executable":"…"` in a JSON message from cargo.
///
/// Target paths of this repository contain nothing that JSON escapes, so this needs no JSON parser.
fn executable(message: &str) -> Option<PathBuf> {
    let (_, rest) = message.split_once(r#""executable":""#)?;
    let (path, _) = rest.split_once('"')?;
    Some(PathBuf::from(path))
}

/// Returns the target folder of the workspace.
pub fn target_folder() -> PathBuf {
    let asked = std::env::var_os("CARGO_TARGET_DIR").map(|folder| root().join(folder));
    asked.unwrap_or_else(|| root().join("target"))
}

/// Returns the build folder shared by all projects outside the workspace, so that their
/// dependencies are compiled only once.
pub fn project_build_folder() -> PathBuf {
    match std::env::var_os("RBUILDER_SCAFFOLD_BUILD_DIR") {
        Some(folder) => folder.into(),
        None => target_folder().join("scaffold"),
    }
}

/// Returns an `rbuilder` command in a folder. `line` contains the arguments and `bin` is the folder
/// of the binary.
///
/// # Errors
///
/// Returns an error if `PATH` cannot be extended.
pub fn rbuilder_command(bin: &Path, folder: &Path, line: &str) -> Result<Cmd> {
    Cmd::new(&format!("rbuilder {line}")).dir(folder).path_first(bin)
}

/// Returns a command in a project with its own workspace. Like for users, the Kubernetes version is
/// determined by the project and not by .cargo/config.toml of this workspace.
///
/// Artifacts are stored in [`project_build_folder`], but each project has its own folder for
/// programs. All of them are named `manager`, and the tests of a project must not start the manager
/// of another project. Versions of Cargo before 1.91 ignore the variable and compile the
/// dependencies for each project.
pub fn project_command(folder: &Path, line: &str) -> Cmd {
    let build = project_build_folder();
    let name = folder.file_name().unwrap_or_default();
    Cmd::new(line)
        .dir(folder)
        .env("CARGO_TARGET_DIR", build.join("projects").join(name))
        .env("CARGO_BUILD_BUILD_DIR", build)
        .env(KUBERNETES, project_kubernetes(folder))
}

/// The variable that selects the Kubernetes version of k8s-openapi if no feature does.
pub const KUBERNETES: &str = "K8S_OPENAPI_ENABLED_VERSION";

/// Returns the Kubernetes version in .cargo/config.toml of this workspace, which scaffolds use as
/// well. Cargo sets the variable if this program is started with `cargo xtask`. Empty otherwise.
pub fn default_kubernetes() -> String {
    std::env::var(KUBERNETES).unwrap_or_default()
}

/// Returns the value of [`KUBERNETES`] for a project.
///
/// Projects select the version with a feature. If it is the version of this workspace, the variable
/// is set to the same value: the build script of k8s-openapi reruns when the variable changes, and
/// both builds would alternately recompile k8s-openapi and kube. For other versions, the variable
/// is empty instead of unset, so that its value is the same for all callers.
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
