//! A temporary directory and the processes running in it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::Error;
use crate::private::{private_folder, write_private};
use crate::watchdog::{self, Watchdog};

/// A temporary directory along with its processes. On Unix, a watchdog kills the processes and
/// removes the directory if this process dies.
#[derive(Debug)]
pub struct Workspace {
    // Must be declared before `folder` in order to be dropped first, or the watchdog would remove
    // the directory.
    watchdog: Watchdog,
    folder: TempDir,
}

impl Workspace {
    /// Cleans up after dead processes, then creates a directory and starts its watchdog.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory can't be created or written, or if `sh` can't be started.
    pub fn create() -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        watchdog::sweep(&parent);
        let folder = private_folder(watchdog::PREFIX)
            .map_err(|err| Error::file("cannot create a folder in", &parent, err))?;
        let watchdog = Watchdog::start(folder.path())?;
        Ok(Self { watchdog, folder })
    }

    /// Path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file to the directory. Suitable for private keys: whatever the umask, only the owner
    /// can access the directory and the file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file can't be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.path().join(name);
        write_private(&path, text).map_err(|err| Error::file("cannot write", &path, err))?;
        Ok(path)
    }

    /// Starts a program that is killed when this process ends. `configure` sets its arguments,
    /// working directory and output. The program has no input, and runs in its own process group so
    /// that Ctrl-C in a terminal only reaches this process.
    ///
    /// Call [`Workspace::forget`] once the program has exited.
    ///
    /// # Errors
    ///
    /// Returns an error if the program can't be started.
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

    /// Unregisters an exited process, since its id may be reused.
    pub fn forget(&self, id: u32) {
        self.watchdog.forget(id);
    }
}

/// Starts a shell that replaces itself with the program once [`release`] writes a line to its
/// stdin. This way, the process id is known before the program runs. If the pipe is closed before
/// that, e.g. because this process was killed, the shell exits.
#[cfg(unix)]
fn guarded_command(program: &Path) -> Command {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", r#"read -r go && exec "$@" </dev/null"#, "sh"])
        .arg(program);
    // Ctrl-C in a terminal must only reach this process; the watchdog kills the servers anyway.
    command.stdin(Stdio::piped()).process_group(0);
    command
}

/// Runs the program immediately, as there's no watchdog that has to learn its process id first.
#[cfg(not(unix))]
fn guarded_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::piped());
    command
}

fn release(child: &mut Child) -> io::Result<()> {
    match child.stdin.take() {
        Some(mut stdin) if cfg!(unix) => stdin.write_all(b"go\n"),
        // Dropping `stdin` closes the program's input.
        Some(_) => Ok(()),
        None => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_workspace_removes_folder() {
        let workspace = Workspace::create().unwrap();
        let folder = workspace.path().to_owned();
        assert!(folder.is_dir());
        drop(workspace);
        assert!(!folder.exists());
    }
}
