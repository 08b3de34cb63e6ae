//! Helpers to scaffold projects which are then checked by a task.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::repo;
use crate::sh::Cmd;

/// Creates a project in a new folder, and locks its dependencies. The first of the `rbuilder`
/// commands must be `init`.
///
/// # Errors
///
/// Returns an error if the folder exists or a command fails.
pub(crate) fn scaffold(bin: &Path, folder: &Path, commands: &[&str]) -> Result<()> {
    fs_err::create_dir(folder)?;
    for line in commands {
        repo::rbuilder_command(bin, folder, line)?.echo().run()?;
    }
    share_lockfile(folder)
}

/// Locks a project's dependencies to the versions from this workspace, to avoid compiling them
/// again.
///
/// # Errors
///
/// Returns an error if the lockfile cannot be copied.
pub(crate) fn share_lockfile(folder: &Path) -> Result<()> {
    fs_err::copy(repo::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(())
}

/// Creates a git repository and commits all files in the folder. Returns the commit hash.
///
/// # Errors
///
/// Returns an error if git fails.
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
///
/// # Errors
///
/// Returns an error if neither CARGO_HOME nor the user's home directory is known.
pub(crate) fn cargo_home() -> Result<PathBuf> {
    let asked = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = || Some(std::env::home_dir()?.join(".cargo"));
    asked
        .or_else(home)
        .context("cargo has no home folder: set CARGO_HOME")
}
