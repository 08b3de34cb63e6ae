//! Runs programs whose output matters, and programs in the background.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use xtask_base::sh::Cmd;

/// Runs a command. Returns whether it was successful, and everything that it has printed.
pub(crate) fn capture(command: Cmd) -> Result<(Result<()>, String)> {
    let mut file = tempfile::tempfile().context("no file for the output")?;
    let result = command.run_into(&file);
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    Ok((result, String::from_utf8_lossy(&text).into_owned()))
}

/// Command line for [`run_script`]. The script is in a variable so that errors do not repeat it.
pub(crate) const BASH: &str = "bash -c 'eval \"$SCRIPT\"'";

/// Runs a script, which can use the functions of journey.sh. The last one of the folders in
/// `programs` comes first on its `PATH`.
pub(crate) fn run_script(bash: Cmd, script: &str, programs: &[Option<&Path>]) -> Result<()> {
    let script = format!("{}\n{script}", include_str!("journey.sh"));
    let mut bash = bash.env("SCRIPT", script).without_input();
    for program in programs.iter().flatten() {
        bash = bash.path_first(program)?;
    }
    bash.run()
}

/// Waits until `holds` returns true. If that takes too long, the error contains `otherwise`.
pub(crate) fn wait_until(
    limit: Duration,
    otherwise: &str,
    mut holds: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let started = Instant::now();
    while !holds()? {
        ensure!(started.elapsed() < limit, "after {limit:?} {otherwise}");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// A program in the background. It's killed on drop.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Starts a program that writes its output to a file.
    pub(crate) fn start(command: Cmd, log: &Path) -> Result<Self> {
        let (mut command, described) = command.into_parts();
        let log = File::create(log)?;
        command.stdout(log.try_clone()?).stderr(log);
        let child = command
            .spawn()
            .with_context(|| format!("cannot run {described}"))?;
        Ok(Running(child))
    }

    /// Waits until `holds` returns true. Returns an error if the program ends before that.
    pub(crate) fn wait_until(
        &mut self,
        limit: Duration,
        otherwise: &str,
        mut holds: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        wait_until(limit, otherwise, || {
            let is_done = holds()?;
            match self.0.try_wait()? {
                Some(status) if !is_done => bail!("it ended with {status}, and {otherwise}"),
                _ => Ok(is_done),
            }
        })
    }

    pub(crate) fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let mut status = None;
        wait_until(limit, "it has not ended", || {
            status = self.0.try_wait()?;
            Ok(status.is_some())
        })?;
        status.context("it has ended")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
