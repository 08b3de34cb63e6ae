//! Measures how much CPU time and memory a command needs. Child processes are included.

use std::io::{Read as _, Seek as _};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use wait4::{ResourceUsage, Wait4 as _};

use crate::sh::Cmd;

/// The lowest values from a number of runs.
#[derive(Clone, Copy, Default)]
pub(super) struct Cost {
    /// User and system CPU time in seconds.
    cpu: Option<f64>,
    /// Peak memory in bytes (of a single process).
    memory: Option<u64>,
}

impl Cost {
    /// Runs a command. If the new values are lower than the current ones, they replace them.
    pub(super) fn add(&mut self, command: Cmd) -> Result<()> {
        let usage = run_measured(command)?;
        let cpu = (usage.utime + usage.stime).as_secs_f64();
        self.cpu = Some(self.cpu.map_or(cpu, |least| least.min(cpu)));
        self.memory = Some(self.memory.map_or(usage.maxrss, |least| least.min(usage.maxrss)));
        Ok(())
    }

    pub(super) fn milliseconds(&self) -> f64 {
        self.cpu.unwrap_or_default() * 1000.0
    }

    pub(super) fn megabytes(&self) -> f64 {
        self.memory.unwrap_or_default() as f64 / 1e6
    }
}

/// Runs a command and returns its resource usage, including child processes. The output is only
/// used for error messages.
pub(super) fn run_measured(command: Cmd) -> Result<ResourceUsage> {
    let (mut command, described) = command.into_parts();
    let mut output = tempfile::tempfile().context("no file for the output")?;
    command
        .stdin(Stdio::null())
        .stdout(output.try_clone().context("no file for the output")?)
        .stderr(output.try_clone().context("no file for the output")?);
    let started = command.spawn().and_then(|mut child| child.wait4());
    let ended = started.with_context(|| format!("cannot run {described}"))?;
    if !ended.status.success() {
        let mut said = String::new();
        output.rewind()?;
        output.read_to_string(&mut said)?;
        bail!("{described} failed ({}):\n{said}", ended.status);
    }
    Ok(ended.rusage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_runs_and_reports_failures() {
        let mut cost = Cost::default();
        cost.add(Cmd::new("true")).unwrap();
        assert!(cost.cpu.is_some() && cost.memory > Some(0));
        let error = cost.add(Cmd::new("sh -c 'echo why; exit 3'")).unwrap_err();
        assert!(error.to_string().contains("why"), "{error}");
    }
}
