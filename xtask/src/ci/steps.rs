//! All steps which are more than just a command line.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

use super::test_binary::TestBinary;
use super::{Context, test_run};
use crate::committed::{list_files, list_folder};
use crate::sh::Cmd;
use crate::{bench, repo, tools};

/// Checks for licenses, crates and sources that are not allowed by deny.toml, and for dependencies
/// that are not used.
pub(super) fn check_dependencies(context: &Context<'_>) -> Result<()> {
    let options = "--log-level error check --hide-inclusion-graph licenses bans sources";
    run_tool(context, "cargo-deny", options, Vec::new())?;
    run_tool(context, "cargo-shear", "--locked", Vec::new())
}

/// Tests the command and its crates, for systems on which we cannot run the servers.
pub(super) fn test_command(context: &Context<'_>) -> Result<()> {
    const PACKAGES: &str = "cli go-project products project generator importer templates syntax schema \
         catalogue cel apiserver judge diagnostic kubernetes printers protobuf re2 reader yaml control-plane";
    let packages = PACKAGES.split_whitespace();
    let packages = packages.map(|name| format!("--package=rbuilder-{name}"));
    context.run_command(context.command("cargo test").args(packages))
}

/// Checks for known vulnerabilities. A machine that cannot reach the database is skipped, but not a
/// runner of GitHub: there, a check that compares nothing would go unnoticed.
pub(super) fn check_advisories(context: &Context<'_>) -> Result<()> {
    let deny = tools::ensure_tool("cargo-deny")?;
    let fetched = Cmd::program(deny).words("fetch db").dir(repo::root()).succeeds();
    if !fetched {
        let said = "the database of advisories cannot be fetched from here: nothing was compared with it";
        ensure!(std::env::var_os("GITHUB_ACTIONS").is_none(), "{said}");
        context.say(said);
        return Ok(());
    }
    let options = "check --hide-inclusion-graph advisories";
    run_tool(context, "cargo-deny", options, Vec::new())
}

/// Checks our own workflows and those of the examples, which users will copy.
pub(super) fn check_workflows(context: &Context<'_>) -> Result<()> {
    let folders = examples()?.into_iter().chain([repo::root().to_owned()]);
    let mut folders: Vec<PathBuf> = folders.map(|folder| folder.join(".github")).collect();
    folders.retain(|folder| folder.is_dir());
    let mut files = Vec::new();
    for folder in &folders {
        for extension in ["yml", "yaml"] {
            files.extend(list_files(&folder.join("workflows"), extension)?);
        }
    }
    ensure!(!files.is_empty(), "there is no workflow");
    run_tool(context, "actionlint", "", files)?;
    // This also finds weaknesses in the configuration of dependency updates. It does not access the
    // network.
    run_tool(
        context,
        "zizmor",
        "--offline --quiet --no-progress --color=never",
        folders,
    )
}

fn run_tool(context: &Context<'_>, name: &str, options: &str, files: Vec<PathBuf>) -> Result<()> {
    let tool = Cmd::program(tools::ensure_tool(name)?).words(options);
    context.run_command(tool.args(files).dir(repo::root()))
}

pub(super) fn check_dockerfiles(context: &Context<'_>) -> Result<()> {
    let files = examples()?.into_iter().map(|example| example.join("Dockerfile"));
    let files: Vec<PathBuf> = files.filter(|file| file.is_file()).collect();
    ensure!(!files.is_empty(), "there is no Dockerfile");
    run_tool(context, "hadolint", "", files)
}

pub(super) fn check_documentation(context: &Context<'_>) -> Result<()> {
    let command = context.command("cargo doc --workspace --no-deps");
    context.run_command(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

/// Runs the first command in README.md. This should be the same as in a new clone, so it builds an
/// `rbuilder` with fewer features. We use a separate folder for it, because at the same time there
/// are tests that need the complete binary in the target folder.
pub(super) fn walk_tour(context: &Context<'_>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let command = context
        .command("cargo tour")
        .env("CARGO_TARGET_DIR", folder.path().join("target"))
        .env("CARGO_BUILD_BUILD_DIR", repo::target_folder())
        .env("RBUILDER_SCAFFOLD_BUILD_DIR", repo::project_build_folder());
    context.run_command(command.arg(folder.path().join("memcached-operator")))
}

/// Checks the formatting and the lints of the examples. Also builds their tests.
pub(super) fn build_examples(context: &Context<'_>) -> Result<()> {
    build_example_tests(context).map(drop)
}

/// Runs the tests of all examples in parallel, since tests with controllers and nodes are mostly
/// waiting.
pub(super) fn test_examples(context: &Context<'_>) -> Result<()> {
    let binaries = build_example_tests(context)?;
    test_run::run_every_test(context, binaries, &context.assets()?)
}

/// Replays the simulations of all examples with a real etcd and kube-apiserver, and reports all failures
/// at the end.
pub(super) fn replay_examples(context: &Context<'_>) -> Result<()> {
    let assets = context.assets()?;
    let mut failed = Vec::new();
    for folder in examples()? {
        context.say(&format!("\nin {}", folder.display()));
        let replay = repo::project_command(&folder, "cargo test --workspace --tests under_faults");
        let replay = replay.env("KUBEBUILDER_ASSETS", &assets);
        if let Err(error) = context.run_command(replay.env("RBUILDER_SIMULATION_SERVER", "1")) {
            failed.push(format!("{}: {error:#}", folder.display()));
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// All steps that compile projects inside of the checkout.
pub(super) const CHECKOUT_PROJECTS: &[&str] = &["examples", "example-tests", "example-servers", "bench-rust"];

/// Removes the build artifacts of all projects in the checkout.
///
/// We need this because Cargo identifies a package of a workspace without its folder. If another
/// checkout or a tutorial has compiled a package with the same name, its artifacts would be reused
/// unless one of the source files here is newer. (For projects that are scaffolded, the files are
/// always newer.)
///
/// Note that artifacts must not be removed while one of the lanes is testing projects.
/// `cargo clean` selects programs by name, and all of ours are called `manager`.
pub(super) fn clean_checkout_projects() -> Result<()> {
    let clean = |folder: &PathBuf| repo::project_command(folder, "cargo clean --workspace --quiet").run();
    examples()?.iter().chain(&[rust_bench()]).try_for_each(clean)
}

/// Returns the folder that contains the Rust operator of the benchmark.
fn rust_bench() -> PathBuf {
    repo::root().join("testdata/bench/rust")
}

/// Returns the test binaries of the examples. The first call in a run checks the lints and builds
/// the examples.
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

/// Runs the doctests of a project, and builds the other tests with the environment variables for a
/// server.
fn build_project_tests(context: &Context<'_>, folder: &Path, assets: &Path) -> Result<Vec<TestBinary>> {
    let command = |line| repo::project_command(folder, line).env("KUBEBUILDER_ASSETS", assets);
    // For a package without a library, cargo would fail.
    if folder.join("src/lib.rs").is_file() {
        context.run_command(command("cargo test --workspace --doc"))?;
    }
    let build = command("cargo test --workspace --no-run --message-format=json-render-diagnostics");
    TestBinary::read_all(&context.read_command(build)?)
}

/// Checks that we can generate manifests for the benchmark projects, and build the operator. This
/// does not measure anything, since that would take too long.
pub(super) fn check_rust_bench(context: &Context<'_>) -> Result<()> {
    bench::check_projects()?;
    let folder = rust_bench();
    lint_project(context, &folder)?;
    context.run_command(repo::project_command(&folder, "cargo test --workspace"))
}

pub(super) fn check_go_bench(context: &Context<'_>) -> Result<()> {
    let folder = repo::root().join("testdata/bench/go");
    let unformatted = Cmd::new("gofmt -l .").dir(&folder).read()?;
    if !unformatted.is_empty() {
        bail!("gofmt would change {}", unformatted.trim().replace('\n', ", "));
    }
    context.run_command(Cmd::new("go vet ./...").dir(&folder))
}

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

fn examples() -> Result<Vec<PathBuf>> {
    let mut folders = list_folder(&repo::root().join("examples"))?;
    folders.retain(|folder| folder.join("Cargo.toml").is_file());
    Ok(folders)
}
