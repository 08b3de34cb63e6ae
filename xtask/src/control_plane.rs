//! The cluster of tasks that need one: etcd, kube-apiserver and stand-ins for some controllers, or the controllers.
//!
//! It is `runtime/examples/control_plane.rs`, or for servers alone `control-plane/examples/servers.rs`, run as a process.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::repo;
use crate::sh::Cmd;

/// A process that ends when its standard input does.
pub(crate) struct ControlPlane {
    child: Child,
    kubeconfig: String,
}

impl ControlPlane {
    /// Starts it with the programs of a folder, and waits until it serves.
    ///
    /// # Errors
    ///
    /// It could not be built, or did not start.
    pub(crate) fn start(assets: &Path) -> Result<Self> {
        Self::start_with(assets, None)
    }

    /// Starts it with controllers and nodes in place of the stand-ins.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start); a program is missing.
    pub(crate) fn start_with_nodes(assets: &Path) -> Result<Self> {
        Self::start_with(assets, Some("nodes"))
    }

    /// Starts etcd and kube-apiserver alone, without compiling the library.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub(crate) fn start_servers(assets: &Path) -> Result<Self> {
        Self::run(Cmd::program(repo::build_example("servers")?), assets)
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

    /// Returns the path of a kubeconfig that may do everything.
    pub(crate) fn kubeconfig(&self) -> &str {
        &self.kubeconfig
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
/// It failed, or the API server warned it.
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
