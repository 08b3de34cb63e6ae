//! Runs a control plane for tasks: etcd and kube-apiserver, optionally with stand-ins for some
//! controllers or with the real controllers.
//!
//! It runs `crates/runtime/examples/control_plane.rs` as a process or, for just the servers,
//! `crates/control-plane/examples/servers.rs`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::repo;
use crate::sh::Cmd;

/// A process that ends when its standard input is closed.
pub(crate) struct ControlPlane {
    child: Child,
    kubeconfig: String,
}

impl ControlPlane {
    /// Starts the programs in a folder, and waits until they are ready.
    ///
    /// # Errors
    ///
    /// Returns an error if the process cannot be built or does not start.
    pub(crate) fn start(assets: &Path) -> Result<Self> {
        Self::start_with(assets, None)
    }

    /// Starts the real controllers and nodes instead of the stand-ins.
    ///
    /// # Errors
    ///
    /// Same as [`start`](Self::start). Also returns an error if a program is missing.
    pub(crate) fn start_with_nodes(assets: &Path) -> Result<Self> {
        Self::start_with(assets, Some("nodes"))
    }

    /// Starts only etcd and kube-apiserver, without compiling the library.
    ///
    /// # Errors
    ///
    /// Same as [`start`](Self::start).
    pub(crate) fn start_servers(assets: &Path) -> Result<Self> {
        Self::run(Cmd::program(repo::build_example("servers")?), assets)
    }

    /// Starts etcd, kube-apiserver with additional arguments, the real controllers and a node,
    /// without compiling the library.
    ///
    /// # Errors
    ///
    /// Same as [`start_with_nodes`](Self::start_with_nodes).
    pub(crate) fn start_audited(assets: &Path, arguments: &[String]) -> Result<Self> {
        let program = Cmd::program(repo::build_example("servers")?);
        Self::run(program.arg("nodes").args(arguments), assets)
    }

    fn start_with(assets: &Path, argument: Option<&str>) -> Result<Self> {
        let program = repo::build_example("control_plane")?;
        Self::run(Cmd::program(program).args(argument), assets)
    }

    fn run(command: Cmd, assets: &Path) -> Result<Self> {
        let (mut command, _) = command
            .dir(repo::root())
            .env("KUBEBUILDER_ASSETS", assets)
            .into_parts();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("the standard output is a pipe")?;
        let mut kubeconfig = String::new();
        BufReader::new(stdout).read_line(&mut kubeconfig)?;
        if kubeconfig.is_empty() {
            bail!("the control plane did not start: {}", child.wait()?);
        }
        let kubeconfig = kubeconfig.trim_end().to_owned();
        Ok(Self { child, kubeconfig })
    }

    /// Returns the path of a kubeconfig with all permissions.
    pub(crate) fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Returns the user and system CPU time that the control plane has used, with a resolution of
    /// 10 ms.
    ///
    /// # Errors
    ///
    /// Returns an error on systems without /proc.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        let mut processes = Vec::new();
        for entry in fs_err::read_dir("/proc")? {
            let path = entry?.path().join("stat");
            // The process may have exited in the meantime, and other entries are not processes.
            let stat = std::fs::read_to_string(path).ok();
            processes.extend(stat.as_deref().and_then(Process::parse));
        }
        let mut family = vec![self.child.id()];
        let mut ticks = 0;
        while let Some(parent) = family.pop() {
            let own = processes.iter().filter(|process| process.id == parent);
            ticks += own.map(|process| process.ticks).sum::<u64>();
            let children = processes.iter().filter(|process| process.parent == parent);
            family.extend(children.map(|process| process.id));
        }
        Ok(TICK * u32::try_from(ticks)?)
    }
}

/// Unit of CPU times in /proc, the same on all platforms supported by Rust.
const TICK: Duration = Duration::from_millis(10);

/// A process in /proc.
struct Process {
    id: u32,
    parent: u32,
    /// CPU time, user and system.
    ticks: u64,
}

impl Process {
    /// Parses `/proc/<id>/stat`: `123 (etcd) S 1 …`, with the user and system time as 14th and 15th
    /// field.
    fn parse(stat: &str) -> Option<Self> {
        let (id, rest) = stat.split_once(' ')?;
        let (_, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            id: id.parse().ok()?,
            parent: fields.get(1)?.parse().ok()?,
            ticks: ticks(11)? + ticks(12)?,
        })
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Runs a client of the API server.
///
/// # Errors
///
/// Returns an error if the client fails or the API server returns a warning.
pub(crate) fn run_without_warning(command: Cmd) -> Result<()> {
    let (mut command, shown) = command.into_parts();
    let ran = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&ran.stderr);
    ensure!(ran.status.success(), "`{shown}` failed:\n{said}");
    ensure!(
        !said.to_lowercase().contains("warning"),
        "`{shown}` was warned:\n{said}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_names_with_spaces_and_parentheses() {
        let stat = "12 (a) b) S 3 12 12 0 -1 4 5 0 0 0 70 8 0 0 20 0 1 0 100";
        let process = Process::parse(stat).unwrap();
        assert_eq!((process.id, process.parent, process.ticks), (12, 3, 78));
    }
}
