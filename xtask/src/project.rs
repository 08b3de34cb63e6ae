//! Projects that checks scaffold with the real command.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::repo;
use crate::sh::Cmd;

/// Makes a project in a new folder with `rbuilder` commands, the first of which is `init`, and locks its dependencies.
///
/// # Errors
///
/// The folder exists, or a command failed.
pub(crate) fn scaffold(bin: &Path, folder: &Path, commands: &[&str]) -> Result<()> {
    fs_err::create_dir(folder)?;
    for line in commands {
        repo::rbuilder_command(bin, folder, line)?.echo().run()?;
    }
    share_lockfile(folder)
}

/// Gives a project the versions of the dependencies that this workspace has, so that they are compiled once for all.
///
/// # Errors
///
/// The file cannot be copied.
pub(crate) fn share_lockfile(folder: &Path) -> Result<()> {
    fs_err::copy(repo::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(())
}

/// Makes a git repository of a folder with one commit, and returns the commit.
///
/// # Errors
///
/// git failed.
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

/// Returns the folder in which cargo keeps what it downloads.
///
/// # Errors
///
/// Neither CARGO_HOME nor the user's home is known.
pub(crate) fn cargo_home() -> Result<PathBuf> {
    let asked = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = || Some(std::env::home_dir()?.join(".cargo"));
    asked
        .or_else(home)
        .context("cargo has no home folder: set CARGO_HOME")
}
