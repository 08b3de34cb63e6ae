//! Steps that need more than a command line.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::test_binary::TestBinary;
use super::{Context, test_run};
use crate::sh::Cmd;
use crate::{bench, repo, tools};

/// Checks licenses, banned crates and sources with deny.toml, and searches for unused dependencies.
pub(super) fn check_dependencies(context: &Context<'_>) -> Result<()> {
    let deny = Cmd::program(tools::ensure_tool(&tools::CARGO_DENY)?)
        .words("--log-level error check --hide-inclusion-graph licenses bans sources");
    context.run_command(deny.dir(repo::root()))?;
    let shear = Cmd::program(tools::ensure_tool(&tools::CARGO_SHEAR)?).words("--locked");
    context.run_command(shear.dir(repo::root()))
}

/// Tests the command and its crates on systems without the servers.
pub(super) fn test_command(context: &Context<'_>) -> Result<()> {
    let packages = [
        "cli",
        "go-project",
        "products",
        "project",
        "generator",
        "importer",
        "templates",
        "syntax",
        "schema",
        "catalogue",
        "cel",
        "judge",
        "diagnostic",
        "re2",
        "reader",
        "yaml",
        "control-plane",
    ];
    let packages = packages.map(|name| format!("--package=rbuilder-{name}"));
    context.run_command(context.command("cargo test").args(packages))
}

/// Checks for known vulnerabilities, unless the advisory database cannot be fetched.
pub(super) fn check_advisories(context: &Context<'_>) -> Result<()> {
    let deny = tools::ensure_tool(&tools::CARGO_DENY)?;
    let fetched = Cmd::program(&deny).words("fetch db").dir(repo::root()).succeeds();
    if !fetched {
        context.say("the database of advisories cannot be fetched from here: nothing was compared with it");
        return Ok(());
    }
    let check = Cmd::program(deny).words("check --disable-fetch --hide-inclusion-graph advisories");
    context.run_command(check.dir(repo::root()))
}

/// Checks the workflows of this repository and of the examples, which users copy.
pub(super) fn check_workflows(context: &Context<'_>) -> Result<()> {
    let mut files = yaml_files(&repo::root().join(".github/workflows"))?;
    for example in examples()? {
        files.extend(yaml_files(&example.join(".github/workflows"))?);
    }
    ensure!(!files.is_empty(), "there is no workflow");
    let actionlint = Cmd::program(tools::ensure_tool(&tools::ACTIONLINT)?);
    context.run_command(actionlint.args(files).dir(repo::root()))?;
    check_weaknesses(context)
}

/// Searches for weaknesses in workflows and in the configuration of dependency updates, without
/// network access.
fn check_weaknesses(context: &Context<'_>) -> Result<()> {
    let mut folders = vec![repo::root().join(".github")];
    folders.extend(examples()?.iter().map(|example| example.join(".github")));
    folders.retain(|folder| folder.is_dir());
    let zizmor = Cmd::program(tools::ensure_tool(&tools::ZIZMOR)?);
    let zizmor = zizmor.words("--offline --quiet --no-progress --color=never");
    context.run_command(zizmor.args(folders).dir(repo::root()))
}

/// Checks the Dockerfiles of the examples, which users copy.
pub(super) fn check_dockerfiles(context: &Context<'_>) -> Result<()> {
    let files = examples()?.into_iter().map(|example| example.join("Dockerfile"));
    let files: Vec<PathBuf> = files.filter(|file| file.is_file()).collect();
    ensure!(!files.is_empty(), "there is no Dockerfile");
    let hadolint = Cmd::program(tools::ensure_tool(&tools::HADOLINT)?);
    context.run_command(hadolint.args(files).dir(repo::root()))
}

pub(super) fn check_documentation(context: &Context<'_>) -> Result<()> {
    let command = context.command("cargo doc --workspace --no-deps");
    context.run_command(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

/// Runs the first command in README.md as in a new clone. Its `rbuilder` has fewer features and is
/// built in a separate folder, because tests use the complete binary in the target folder at the
/// same time.
pub(super) fn walk_tour(context: &Context<'_>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let command = context
        .command("cargo tour")
        .env("CARGO_TARGET_DIR", folder.path().join("target"))
        .env("CARGO_BUILD_BUILD_DIR", repo::target_folder())
        .env("RBUILDER_SCAFFOLD_BUILD_DIR", repo::project_build_folder());
    context.run_command(command.arg(folder.path().join("memcached-operator")))
}

/// Checks the format and lints of the examples, and builds their tests.
pub(super) fn build_examples(context: &Context<'_>) -> Result<()> {
    build_example_tests(context).map(drop)
}

/// Tests all examples in parallel. Tests with controllers and nodes mostly wait.
pub(super) fn test_examples(context: &Context<'_>) -> Result<()> {
    let binaries = build_example_tests(context)?;
    test_run::run_every_test(context, binaries, &context.assets()?)
}

/// Replays the simulations of the examples on etcd and kube-apiserver.
pub(super) fn replay_examples(context: &Context<'_>) -> Result<()> {
    let assets = context.assets()?;
    for folder in examples()? {
        context.say(&format!("\nin {}", folder.display()));
        let replay = repo::project_command(&folder, "cargo test --workspace --tests under_faults");
        let replay = replay.env("KUBEBUILDER_ASSETS", &assets);
        context.run_command(replay.env("RBUILDER_SIMULATION_SERVER", "1"))?;
    }
    Ok(())
}

/// The steps that compile projects in the checkout.
pub(super) const CHECKOUT_PROJECTS: &[&str] = &["examples", "example-tests", "example-servers", "bench-rust"];

/// Removes the build artifacts of projects in the checkout.
///
/// Cargo identifies a workspace package independently of its folder. It would reuse artifacts that
/// another checkout or a tutorial has compiled for a package with the same name, unless a source
/// file in the example is newer. The files of scaffolded projects are always newer.
///
/// Do not remove artifacts while a lane tests projects: `cargo clean` selects programs by name, and
/// all are named `manager`.
pub(super) fn clean_checkout_projects() -> Result<()> {
    let clean = |folder: &PathBuf| repo::project_command(folder, "cargo clean --workspace --quiet").run();
    examples()?.iter().chain(&[rust_bench()]).try_for_each(clean)
}

/// Returns the folder of the Rust operator to measure.
fn rust_bench() -> PathBuf {
    repo::root().join("testdata/bench/rust")
}

/// Returns the test binaries of the examples. Lints and builds the examples first, unless this has
/// already been done in this run.
fn build_example_tests<'a>(context: &'a Context<'_>) -> Result<&'a [TestBinary]> {
    if let Some(binaries) = context.run.example_binaries.get() {
        return Ok(binaries);
    }
    let assets = context.assets()?;
    let mut binaries = Vec::new();
    for folder in examples()? {
        lint_project(context, &folder)?;
        binaries.extend(build_project_tests(context, &folder, &assets)?);
    }
    Ok(context.run.example_binaries.get_or_init(|| binaries))
}

/// Runs a project's documentation tests, and builds its other tests with the server's environment
/// variables.
fn build_project_tests(context: &Context<'_>, folder: &Path, assets: &Path) -> Result<Vec<TestBinary>> {
    let command = |line| repo::project_command(folder, line).env("KUBEBUILDER_ASSETS", assets);
    // Cargo fails if the package has no library.
    if folder.join("src/lib.rs").is_file() {
        context.run_command(command("cargo test --workspace --doc"))?;
    }
    let build = command("cargo test --workspace --no-run --message-format=json-render-diagnostics");
    TestBinary::read_all(&context.read_command(build)?)
}

/// Checks that the benchmark projects generate manifests, and that the benchmark operator builds.
/// Measuring would take too long.
pub(super) fn check_rust_bench(context: &Context<'_>) -> Result<()> {
    bench::check_projects()?;
    let folder = rust_bench();
    lint_project(context, &folder)?;
    context.run_command(repo::project_command(&folder, "cargo test --workspace"))
}

/// Checks that the Go operator to measure builds.
pub(super) fn check_go_bench(context: &Context<'_>) -> Result<()> {
    let folder = repo::root().join("testdata/bench/go");
    let unformatted = Cmd::new("gofmt -l .").dir(&folder).read()?;
    if !unformatted.is_empty() {
        bail!("gofmt would change {}", unformatted.trim().replace('\n', ", "));
    }
    context.run_command(Cmd::new("go vet ./...").dir(&folder))
}

/// Checks the format and lints of a project outside the workspace.
fn lint_project(context: &Context<'_>, folder: &Path) -> Result<()> {
    context.say(&format!("\nin {}", folder.display()));
    for line in [
        "cargo fmt --check",
        "cargo clippy --workspace --all-targets --all-features -- --deny warnings",
    ] {
        context.run_command(repo::project_command(folder, line))?;
    }
    Ok(())
}

/// Returns the folders of the examples.
fn examples() -> Result<Vec<PathBuf>> {
    let entries = fs_err::read_dir(repo::root().join("examples"))?;
    let mut folders: Vec<_> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .context("cannot list the examples")?;
    folders.retain(|folder| folder.join("Cargo.toml").is_file());
    folders.sort();
    Ok(folders)
}

/// Returns the YAML files in a folder, or an empty list if the folder does not exist.
fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs_err::read_dir(folder)?;
    let mut files: Vec<_> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "yml" || extension == "yaml")
    });
    files.sort();
    Ok(files)
}
