//! `cargo tour`, the first command in README.md: creates an operator in an empty folder and
//! reconciles its sample, with the commands that a user would type.
//!
//! It only needs Rust. It is a separate package so that its first output appears within a second.
//! Steps that take longer are announced, and show the progress of cargo.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use xtask_base::page::Page;
use xtask_base::repo;
use xtask_base::sh::Cmd;

/// The page that describes the project.
const PAGE: &str = "docs/tutorial.md";

/// The type that the tour shows and breaks.
const TYPES: &str = "src/api/v1alpha1/memcached.rs";

/// The controller that the tour shows.
const CONTROLLER: &str = "src/controller/memcached.rs";

/// A mistake in the type: the correct text and its replacement.
const MISTAKE: (&str, &str) = ("validation(minimum", "validation(minimun");

/// An example for the project. It runs the controller on the fake API server and prints the
/// reconciled sample.
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

/// Creates an empty folder with the name of the project, because `init` names the project after the
/// folder.
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

/// Runs the commands and edits of the tutorial, then shows the type and the generated files.
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

/// Misspells a marker, shows the error message, and restores the file.
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

/// Prints a command that replaces text in the type. `\Q` quotes the parenthesis.
fn print_replacement(from: &str, to: &str) {
    println!("$ perl -pi -e 's/\\Q{from}/{to}/' {TYPES}");
}

/// Runs the controller on the fake API server.
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
            // Use the versions of the workspace, whose dependencies are compiled already.
            fs_err::copy(repo::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
            repo::project_command(folder, run)
        }
        // The project selects its Kubernetes version. Do not override it with .cargo/config.toml of
        // the checkout.
        None => Cmd::new(run).dir(folder).without(repo::KUBERNETES),
    };
    command.echo().run()
}

/// Adds the dependency with which the example prints YAML, as `cargo add --dev serde-saphyr` does.
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
