//! Runs a control plane for other tasks. It always has etcd and kube-apiserver, and optionally
//! controllers (these can be either real or simple stand-ins).
//!
//! The control plane is another process. It runs `crates/runtime/examples/control_plane.rs`, or
//! `crates/control-plane/examples/servers.rs` if we don't need anything but the servers.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::repo;
use crate::sh::Cmd;

/// A process that exits when its stdin is closed.
pub(crate) struct ControlPlane {
    child: Child,
    kubeconfig: String,
}

impl ControlPlane {
    /// Starts the programs from a folder and waits for them to become ready.
    pub(crate) fn start(assets: &Path) -> Result<Self> {
        Self::start_with(assets, None)
    }

    /// Like [`start`](Self::start), but using real controllers and nodes.
    pub(crate) fn start_with_nodes(assets: &Path) -> Result<Self> {
        Self::start_with(assets, Some("nodes"))
    }

    /// Starts just etcd and kube-apiserver. We don't have to compile the library for this.
    pub(crate) fn start_servers(assets: &Path) -> Result<Self> {
        Self::run(Cmd::program(repo::build_example("servers")?), assets)
    }

    /// Starts etcd, kube-apiserver (with some additional arguments), the real controllers and a
    /// node. We don't have to compile the library for this.
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

    /// Returns the path of a kubeconfig for a user who may do anything.
    pub(crate) fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Returns the CPU time (user and system) used by the control plane so far. The resolution is
    /// 10 ms.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        let mut processes = Vec::new();
        for entry in fs_err::read_dir("/proc")? {
            let path = entry?.path().join("stat");
            // Ignore errors. The process may have exited by now, and not all entries are processes.
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

/// The unit of CPU times in /proc. It is the same on every platform that Rust supports.
const TICK: Duration = Duration::from_millis(10);

struct Process {
    id: u32,
    parent: u32,
    /// The CPU time, which is the sum of user and system time.
    ticks: u64,
}

impl Process {
    /// Parses the content of `/proc/<id>/stat`. It looks like `123 (etcd) S 1 …`, and the times are
    /// in fields 14 (user) and 15 (system).
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

/// Runs a client of the API server such as kubectl.
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
