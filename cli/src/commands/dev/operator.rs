//! Builds, starts and stops the operator as a child process.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rbuilder_control_plane::Workspace;
use serde_json::Value;

use crate::cluster::{Interrupt, POLL_INTERVAL, Reach, terminate, wait_for};
use crate::commands::run::NO_CARGO;
use crate::programs::find_program;

/// Grace period for an operator to finish its reconciles and release its lease.
const GRACE: Duration = Duration::from_secs(30);

/// Builds one of the project's binaries and returns its path. Compile errors are printed by cargo.
/// Also fails if this process is interrupted.
pub(super) fn build(dir: &Path, bin: &str, workspace: &Workspace, interrupt: &Interrupt) -> Result<PathBuf> {
    let cargo = find_program("cargo").context(NO_CARGO)?;
    let mut child = workspace.spawn(&cargo, |command| {
        command.args(["build", "--bin", bin, "--message-format=json-render-diagnostics"]);
        command.current_dir(dir).stdout(Stdio::piped());
    })?;
    let stdout = child.stdout.take().context("cargo has no output")?;
    let name = bin.to_owned();
    let messages = std::thread::spawn(move || {
        let lines = BufReader::new(stdout).lines().map_while(Result::ok);
        lines.filter_map(|line| find_executable(&line, &name)).last()
    });
    let status = wait_for(&mut child, interrupt, end_group).context("cannot wait for cargo")?;
    workspace.forget(child.id());
    if !status.success() {
        bail!("`cargo build --bin {bin}` failed");
    }
    let program = messages.join().unwrap_or_default();
    let program = program.with_context(|| format!("cargo built no binary named `{bin}`"))?;
    keep_apart(program, workspace)
}

fn find_executable(message: &str, bin: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_bin = message["target"]["name"] == bin && message["target"]["kind"][0] == "bin";
    is_bin.then(|| message["executable"].as_str().map(PathBuf::from))?
}

/// Finds a path that the next build doesn't write to. Windows can't replace a running program.
#[cfg(windows)]
#[allow(clippy::disallowed_methods)] // the copy is outside of the project
fn keep_apart(program: PathBuf, workspace: &Workspace) -> Result<PathBuf> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static COPIES: AtomicUsize = AtomicUsize::new(0);
    let copy = COPIES.fetch_add(1, Ordering::Relaxed);
    let copy = workspace.path().join(format!("manager-{copy}.exe"));
    std::fs::copy(&program, &copy).with_context(|| format!("cannot copy {}", program.display()))?;
    Ok(copy)
}

#[cfg(not(windows))]
#[allow(clippy::unnecessary_wraps)] // the other implementation copies the file
fn keep_apart(program: PathBuf, _: &Workspace) -> Result<PathBuf> {
    Ok(program)
}

/// A running operator, killed on drop.
pub(super) struct Operator<'a> {
    child: Child,
    workspace: &'a Workspace,
}

impl<'a> Operator<'a> {
    /// Starts a binary in the project directory, with its log in this process's own output.
    pub(super) fn start(
        program: &Path,
        arguments: &[OsString],
        dir: &Path,
        kubeconfig: &Path,
        variables: &[(&str, String)],
        workspace: &'a Workspace,
    ) -> Result<Operator<'a>> {
        let child = workspace.spawn(program, |command| {
            command
                .args(arguments)
                .current_dir(dir)
                .env("KUBECONFIG", kubeconfig)
                .envs(variables.iter().map(|(name, value)| (name, value)));
        })?;
        Ok(Operator { child, workspace })
    }

    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks the operator to stop, and kills it after a grace period.
    pub(super) fn stop(mut self) -> Option<ExitStatus> {
        let deadline = Instant::now() + GRACE;
        if !self.has_ended() {
            end_group(&mut self.child);
        }
        while !self.has_ended() && Instant::now() < deadline {
            std::thread::sleep(POLL_INTERVAL);
        }
        self.kill()
    }

    fn kill(&mut self) -> Option<ExitStatus> {
        // If this fails, the operator has already exited.
        let _ = self.child.kill();
        let status = self.child.wait().ok();
        self.workspace.forget(self.child.id());
        status
    }
}

impl Drop for Operator<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Asks a child's process group to stop. Without signals, the child is killed instead.
fn end_group(child: &mut Child) {
    if !terminate(child, Reach::Group) {
        let _ = child.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_binary_in_the_messages_of_cargo() {
        let check = |message: &str, expected: Option<&str>| {
            assert_eq!(
                find_executable(message, "manager"),
                expected.map(PathBuf::from),
                "{message}"
            );
        };
        check(
            r#"{"target":{"name":"manager","kind":["bin"]},"executable":"/t/debug/manager"}"#,
            Some("/t/debug/manager"),
        );
        check(
            r#"{"target":{"name":"manager","kind":["lib"]},"executable":null}"#,
            None,
        );
        check(
            r#"{"target":{"name":"other","kind":["bin"]},"executable":"/t/debug/other"}"#,
            None,
        );
        check(r#"{"reason":"build-finished"}"#, None);
        check("warning", None);
    }
}
