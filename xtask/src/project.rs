//! Helpers to scaffold projects which are then checked by a task.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::repo;
use crate::sh::Cmd;

/// Creates a project in a new folder, and locks its dependencies. The first of the `rbuilder`
/// commands must be `init`.
pub(crate) fn scaffold(bin: &Path, folder: &Path, commands: &[impl AsRef<str>]) -> Result<()> {
    println!("\nin {}", folder.display());
    make_project(bin, folder, commands)?;
    share_lockfile(folder)
}

pub(crate) fn make_project(bin: &Path, folder: &Path, commands: &[impl AsRef<str>]) -> Result<()> {
    fs_err::create_dir(folder)?;
    for line in commands {
        repo::rbuilder_command(bin, folder, line.as_ref())?.read()?;
    }
    Ok(())
}

/// Runs an `rbuilder` command which must not change anything, since it has been run before.
pub(crate) fn run_again(bin: &Path, folder: &Path, line: &str) -> Result<()> {
    let again = repo::rbuilder_command(bin, folder, line)?.read()?;
    ensure!(
        again.starts_with("unchanged"),
        "a second `rbuilder {line}` changes files:\n{again}"
    );
    Ok(())
}

/// Replaces a text in a file, where it must be.
pub(crate) fn edit(path: &Path, old: &str, new: &str) -> Result<()> {
    let text = fs_err::read_to_string(path)?;
    ensure!(text.contains(old), "{} has no `{old}`", path.display());
    Ok(fs_err::write(path, text.replace(old, new))?)
}

/// Locks a project's dependencies to the versions from this workspace, to avoid compiling them
/// again.
pub(crate) fn share_lockfile(folder: &Path) -> Result<()> {
    fs_err::copy(repo::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(())
}

/// Creates a git repository and commits all files in the folder. Returns the commit hash.
pub(crate) fn commit_all(folder: &Path) -> Result<String> {
    let git = |line: &str| {
        Cmd::new("git -c user.name=test -c user.email=test@example.com")
            .words(line)
            .dir(folder)
    };
    git("init --quiet").run()?;
    git("add --all").run()?;
    git("commit --quiet --message 'A project'").run()?;
    Ok(git("rev-parse HEAD").read()?.trim_end().to_owned())
}

/// Returns the home folder of cargo, which is where it stores downloaded packages.
pub(crate) fn cargo_home() -> Result<PathBuf> {
    let asked = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = || Some(std::env::home_dir()?.join(".cargo"));
    asked
        .or_else(home)
        .context("cargo has no home folder: set CARGO_HOME")
}
