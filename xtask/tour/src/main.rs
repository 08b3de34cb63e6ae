//! `cargo tour`: this is the first command in README.md. It creates an operator in an empty folder
//! and reconciles the sample. All commands are the same that a user would type.
//!
//! You don't need anything except for Rust. This is a package of its own, since the first output
//! should appear within a second. If a step takes longer than that, we announce it and show the
//! progress of cargo.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use xtask_base::page::Page;
use xtask_base::repo;
use xtask_base::sh::Cmd;

const PAGE: &str = "docs/tutorial.md";

/// This file contains the type, which we print and break.
const TYPES: &str = "src/api/v1alpha1/memcached.rs";

const CONTROLLER: &str = "src/controller/memcached.rs";

/// The mistake that we make in the type. The first text is correct, and is replaced with the
/// second.
const MISTAKE: (&str, &str) = ("validation(minimum", "validation(minimun");

/// This is added to the project as an example. It runs the controller with the fake API server, and
/// prints the sample when it has been reconciled.
const RECONCILE_SAMPLE: &str = include_str!("../project/reconcile_sample.rs");

const USAGE: &str = "Usage: cargo tour [FOLDER]

Makes a Memcached operator in FOLDER [default: a new folder in the system's temporary folder], step by step.";

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let folder = args.next();
    if args.next().is_some()
        || folder
            .as_ref()
            .is_some_and(|arg| arg.to_string_lossy().starts_with('-'))
    {
        println!("{USAGE}");
        return ExitCode::from(2);
    }
    match walk(folder.map(PathBuf::from)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn walk(folder: Option<PathBuf>) -> Result<()> {
    println!(
        "\
A tour of rbuilder, from an empty directory to an operator that reconciles. On two cores:

  1. build the command `rbuilder`: about a minute
  2. scaffold an operator, generate its manifests, make a mistake: at once
  3. build the operator with kube and reconcile a sample on a fake API server: about two minutes"
    );
    heading(1, "Build the command");
    println!("$ cargo build --package rbuilder-cli --no-default-features");
    let bin = repo::build_small_rbuilder_in_view()?;
    let folder = make_folder(folder)?;
    heading(2, "Scaffold an operator and generate its manifests");
    println!("$ export PATH=\"{}:$PATH\"", bin.display());
    scaffold(&bin, &folder)?;
    show_mistake(&bin, &folder)?;
    heading(3, "Build the operator and reconcile the sample");
    reconcile(&folder)?;
    println!(
        "\nThe operator is in {}. Next: read its README.md, or run:",
        folder.display()
    );
    println!("  cd {} && cargo test", folder.display());
    Ok(())
}

fn heading(number: usize, text: &str) {
    println!("\n== {number}. {text}\n");
}

/// Creates an empty folder. Its name must be the project's name, because that's how `init` chooses
/// the name.
fn make_folder(asked: Option<PathBuf>) -> Result<PathBuf> {
    let folder = asked.unwrap_or_else(|| {
        let unique = format!("rbuilder-tour-{}", std::process::id());
        std::env::temp_dir().join(unique).join("memcached-operator")
    });
    fs_err::create_dir_all(&folder)?;
    let folder = fs_err::canonicalize(folder)?;
    ensure!(
        fs_err::read_dir(&folder)?.next().is_none(),
        "{} is not empty",
        folder.display()
    );
    Ok(folder)
}

/// Follows the tutorial by running its commands and applying its edits. After that, shows the type
/// and what was generated.
fn scaffold(bin: &Path, folder: &Path) -> Result<()> {
    println!("$ mkdir -p {0} && cd {0}", folder.display());
    for step in Page::read(PAGE)?.steps {
        for command in step.action.rbuilder_commands() {
            rbuilder(bin, folder, command)?.run()?;
        }
        if let Some(path) = step.action.edit_file(folder)? {
            println!("\n# as {PAGE} says:\n$ $EDITOR {path}");
        }
    }
    show(folder, TYPES)?;
    show(folder, CONTROLLER)?;
    rbuilder(bin, folder, "manifests")?.run()?;
    show(folder, "config/crd/bases/cache.example.com_memcacheds.yaml")?;
    show(folder, "config/rbac/role.yaml")
}

/// Makes a typo in one of the markers and shows the resulting error. The file is restored at the
/// end.
fn show_mistake(bin: &Path, folder: &Path) -> Result<()> {
    let path = folder.join(TYPES);
    let text = fs_err::read_to_string(&path)?;
    let (right, wrong) = MISTAKE;
    ensure!(text.contains(right), "{TYPES} has no `{right}`");
    println!("\n# a mistake: `{wrong}` in place of `{right}`");
    print_replacement(right, wrong);
    fs_err::write(&path, text.replacen(right, wrong, 1))?;
    let refused = rbuilder(bin, folder, "manifests")?.run();
    fs_err::write(&path, text)?;
    if refused.is_ok() {
        bail!("`rbuilder manifests` accepted `{wrong}`");
    }
    println!("\n# and back");
    print_replacement(wrong, right);
    Ok(())
}

/// Prints a command with which the user could replace the text. The parenthesis is quoted by `\Q`.
fn print_replacement(from: &str, to: &str) {
    println!("$ perl -pi -e 's/\\Q{from}/{to}/' {TYPES}");
}

/// Runs the controller with the fake API server.
fn reconcile(folder: &Path) -> Result<()> {
    let examples = folder.join("examples");
    fs_err::create_dir_all(&examples)?;
    fs_err::write(examples.join("reconcile_sample.rs"), RECONCILE_SAMPLE)?;
    show(folder, "examples/reconcile_sample.rs")?;
    println!();
    add_yaml(&folder.join("Cargo.toml"))?;
    let run = "cargo run --example reconcile_sample";
    let command = match std::env::var_os("RBUILDER_SCAFFOLD_BUILD_DIR") {
        Some(_) => {
            // If we use the same versions as the workspace, the dependencies don't have to be
            // compiled.
            fs_err::copy(repo::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
            repo::project_command(folder, run)
        }
        // The Kubernetes version is selected by the project. It must not be overridden by the
        // .cargo/config.toml of the checkout.
        None => Cmd::new(run).dir(folder).without(repo::KUBERNETES),
    };
    command.echo().run()
}

/// Adds the dependency that the example uses for YAML. We could also run
/// `cargo add --dev serde-saphyr`.
fn add_yaml(manifest: &Path) -> Result<()> {
    const TABLE: &str = "[dev-dependencies]\n";
    let text = fs_err::read_to_string(manifest)?;
    ensure!(
        text.contains(TABLE),
        "{} has no dev-dependencies",
        manifest.display()
    );
    fs_err::write(
        manifest,
        text.replacen(TABLE, &format!("{TABLE}serde-saphyr = \"2\"\n"), 1),
    )?;
    Ok(())
}

fn rbuilder(bin: &Path, folder: &Path, line: &str) -> Result<Cmd> {
    println!();
    Ok(repo::rbuilder_command(bin, folder, line)?.echo())
}

fn show(folder: &Path, path: &str) -> Result<()> {
    println!("\n$ cat {path}");
    let text = fs_err::read_to_string(folder.join(path)).context("the tour cannot show a file")?;
    print!("{text}");
    Ok(())
}
