//! A server process. It is registered with the watchdog before it runs, and its output is kept for
//! error messages.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::settings::Settings;
use crate::Error;
use crate::private::create_private;
use crate::workspace::Workspace;

const TAIL: usize = 20;

/// A running server. Not killed on drop, because [`super::control_plane`] must stop the servers in
/// order.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<OsString>,
    child: Child,
    /// Whether the server was killed on purpose and not restarted yet.
    is_down: bool,
    /// `None` if the server inherits the output of this process.
    log: Option<PathBuf>,
}

impl Process {
    pub(crate) fn start(
        name: &'static str,
        program: &Path,
        arguments: Vec<OsString>,
        workspace: &Workspace,
        settings: &Settings,
    ) -> Result<Self, Error> {
        let log = (!settings.attach_output).then(|| workspace.path().join(format!("{name}.log")));
        let output = log.as_deref().map(log_files).transpose()?;
        let child = workspace.spawn(program, |command| {
            command.args(&arguments).current_dir(workspace.path());
            if let Some((out, err)) = output {
                command.stdout(out).stderr(err);
            }
        })?;
        Ok(Self {
            name,
            program: program.to_owned(),
            arguments,
            child,
            is_down: false,
            log,
        })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Sends a signal, which is named without `SIG`, e.g. `STOP`.
    pub(crate) fn signal(&self, signal: &str) -> Result<(), Error> {
        let (name, id) = (self.name, self.child.id().to_string());
        // The standard library can only send SIGKILL.
        let sent = Command::new("/bin/sh")
            .args(["-c", r#"kill -s "$1" "$2""#, "sh", signal, &id])
            .status();
        match sent {
            Ok(status) if status.success() => Ok(()),
            _ => Err(Error::new(format!("cannot send SIG{signal} to {name}"))),
        }
    }

    pub(crate) fn take_down(&mut self, workspace: &Workspace) {
        if !std::mem::replace(&mut self.is_down, true) {
            self.kill(workspace);
        }
    }

    pub(crate) fn restart(&mut self, workspace: &Workspace, settings: &Settings) -> Result<(), Error> {
        self.take_down(workspace);
        let arguments = self.arguments.clone();
        *self = Self::start(self.name, &self.program, arguments, workspace, settings)?;
        Ok(())
    }

    /// Fails if the process has exited, unless it was killed on purpose. Servers never exit on
    /// their own.
    pub(crate) fn check_running(&mut self) -> Result<(), Error> {
        if self.is_down {
            return Ok(());
        }
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.error(&format!("ended with {status}"))),
            Err(err) => Err(self.error(&format!("cannot be watched: {err}"))),
        }
    }

    pub(crate) fn error(&self, what: &str) -> Error {
        let name = self.name;
        let Some(path) = &self.log else {
            return Error::new(format!("{name} {what}; its output is above"));
        };
        let log = fs::read(path).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        Error::new(format!("{name} {what}; its last lines:\n{}", tail(&log)))
    }

    /// Returns true if the server exited because its port was in use by another process.
    pub(crate) fn lost_its_port(&self) -> bool {
        let log = self
            .log
            .as_ref()
            .and_then(|path| fs::read(path).ok())
            .unwrap_or_default();
        String::from_utf8_lossy(&log).contains("address already in use")
    }

    /// No graceful stop, as the data is temporary.
    pub(crate) fn kill(&mut self, workspace: &Workspace) {
        // Only fails if the process already exited.
        let _ = self.child.kill();
        if self.child.wait().is_ok() {
            workspace.forget(self.child.id());
        }
    }

    /// Like [`Process::kill`], but with a deadline.
    pub(crate) fn kill_until(&mut self, workspace: &Workspace, deadline: Instant) -> Result<(), Error> {
        let _ = self.child.kill();
        while self.ended()?.is_none() {
            if Instant::now() >= deadline {
                return Err(self.error("did not end in time"));
            }
            sleep(Duration::from_millis(10));
        }
        workspace.forget(self.child.id());
        Ok(())
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child
            .try_wait()
            .map_err(|err| self.error(&format!("cannot be waited for: {err}")))
    }
}

/// Handles for stdout and stderr.
fn log_files(path: &Path) -> Result<(File, File), Error> {
    let create = || -> io::Result<_> {
        let file = create_private(path)?;
        Ok((file.try_clone()?, file))
    };
    create().map_err(|err| Error::file("cannot write", path, err))
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let from = lines.len().saturating_sub(TAIL);
    lines[from..]
        .iter()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn start(script: &str, workspace: &Workspace) -> Process {
        let settings = Settings {
            start_timeout: Duration::from_secs(1),
            stop_timeout: Duration::from_secs(1),
            attach_output: false,
            etcd_args: Vec::new(),
            apiserver_args: Vec::new(),
            controllers: false,
            nodes: 0,
        };
        let arguments = vec!["-c".into(), script.into()];
        Process::start("server", Path::new("/bin/sh"), arguments, workspace, &settings).unwrap()
    }

    #[test]
    fn exited_server_is_reported_with_last_lines() {
        let workspace = Workspace::create().unwrap();
        let script =
            "for i in $(seq 30); do echo line $i; done; echo bind: address already in use >&2; exit 3";
        let mut process = start(script, &workspace);
        let error = loop {
            if let Err(err) = process.check_running() {
                break err.to_string();
            }
            sleep(Duration::from_millis(10));
        };
        assert!(
            error.starts_with("server ended with exit status: 3; its last lines:\n  line 12\n"),
            "{error}"
        );
        assert!(
            error.ends_with("line 30\n  bind: address already in use"),
            "{error}"
        );
        assert!(process.lost_its_port());
    }

    #[test]
    fn killed_server_has_exited() {
        let workspace = Workspace::create().unwrap();
        let mut process = start("exec sleep 600", &workspace);
        process.check_running().unwrap();
        process
            .kill_until(&workspace, Instant::now() + Duration::from_secs(5))
            .unwrap();
        let error = process.check_running().unwrap_err().to_string();
        assert!(error.contains("signal: 9"), "{error}");
    }
}
