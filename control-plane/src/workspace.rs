//! The folder of one control plane, and what it starts.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::Error;
use crate::watchdog::{self, Watchdog};

/// A temporary folder and the processes that belong to it. On Unix, a watchdog sees to it that neither outlives this
/// process.
#[derive(Debug)]
pub struct Workspace {
    // Dropped before the folder, which the watchdog would otherwise remove.
    watchdog: Watchdog,
    folder: TempDir,
}

impl Workspace {
    /// Removes what dead processes left behind, then creates a folder and starts its watchdog.
    ///
    /// # Errors
    /// When the folder cannot be written, or no shell can be started.
    pub fn create() -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        watchdog::sweep(&parent);
        let folder = tempfile::Builder::new()
            .prefix(watchdog::PREFIX)
            .tempdir_in(&parent);
        let folder = folder.map_err(|err| Error::file("cannot create a folder in", &parent, err))?;
        let watchdog = Watchdog::start(folder.path())?;
        Ok(Self { watchdog, folder })
    }

    /// Returns the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file into the folder, which only its owner can read: some files are private keys.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.path().join(name);
        fs::write(&path, text).map_err(|err| Error::file("cannot write", &path, err))?;
        Ok(path)
    }

    /// Starts a program that ends with this process, after `configure` has set its arguments, folder and output. It has
    /// no input and a process group of its own, so that Ctrl-C in a terminal reaches this process only.
    ///
    /// After it has ended, [`Workspace::forget`] it.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn spawn(&self, program: &Path, configure: impl FnOnce(&mut Command)) -> Result<Child, Error> {
        let mut command = guarded_command(program);
        configure(&mut command);
        let spawned = command.spawn();
        let mut child = spawned.map_err(|err| Error::file("cannot start", program, err))?;
        let released = self
            .watchdog
            .watch(child.id())
            .and_then(|()| release(&mut child).map_err(|err| Error::file("cannot start", program, err)));
        if let Err(err) = released {
            let _ = child.kill();
            let _ = child.wait();
            self.forget(child.id());
            return Err(err);
        }
        Ok(child)
    }

    /// Removes a process that has ended from the watchdog's list, since its id may be reused.
    pub fn forget(&self, id: u32) {
        self.watchdog.forget(id);
    }
}

/// Returns a command that runs a program once it is [released](release): a shell with the id of the later
/// program waits for a line on its standard input and then replaces itself with the program. When the pipe ends before
/// the line, the shell exits.
#[cfg(unix)]
fn guarded_command(program: &Path) -> Command {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", r#"read -r go && exec "$@" </dev/null"#, "sh"])
        .arg(program);
    // Ctrl-C in a terminal must reach this process only; the servers end with it in any case.
    command.stdin(Stdio::piped()).process_group(0);
    command
}

/// Returns a command that runs a program at once: there is no watchdog that needs its process id first.
#[cfg(not(unix))]
fn guarded_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::piped());
    command
}

/// Lets the shell run the program.
fn release(child: &mut Child) -> io::Result<()> {
    match child.stdin.take() {
        Some(mut stdin) if cfg!(unix) => stdin.write_all(b"go\n"),
        // Its input ends.
        Some(_) => Ok(()),
        None => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_leaves_nothing() {
        let workspace = Workspace::create().unwrap();
        let folder = workspace.path().to_owned();
        assert!(folder.is_dir());
        drop(workspace);
        assert!(!folder.exists());
    }
}
