//! The cluster that the operator runs against: a control plane started by this process, or an
//! existing cluster.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rbuilder_control_plane::{Assets, Cancel, ControlPlane, Settings, Workspace};

use super::rendered::Rendered;
use crate::cluster::{ClusterChoice, Interrupt, Kubectl};
use crate::commands::envtest::find_installed;
use crate::flags::DevFlags;
use crate::shell::Shell;

/// Interval at which signals, servers and the operator are checked.
pub(super) const TICK: Duration = Duration::from_millis(200);

pub(super) struct Cluster {
    kubectl: Kubectl,
    kubeconfig: PathBuf,
    /// `None` for an existing cluster.
    plane: Option<ControlPlane>,
}

pub(super) fn choice(flags: &DevFlags) -> ClusterChoice {
    ClusterChoice {
        kubeconfig: flags.kubeconfig.clone(),
        context: flags.context.clone(),
    }
}

/// Checks that the cluster can call the operator's webhooks. For an existing cluster, the user must
/// specify an address at which it reaches this machine.
pub(super) fn check_reachable(flags: &DevFlags, rendered: &Rendered) -> Result<()> {
    if flags.context.is_some() && flags.webhook_host.is_none() && rendered.has_webhooks() {
        bail!(
            "the project has webhooks, and the cluster of `--context` has to reach them on this machine: pass \
             `--webhook-host` with an address that it can connect to, such as 172.17.0.1 (kind on Linux) or \
             host.docker.internal (Docker Desktop)"
        );
    }
    Ok(())
}

impl Cluster {
    pub(super) fn start(
        flags: &DevFlags,
        dir: &Path,
        kubectl: &Kubectl,
        workspace: &Workspace,
        interrupt: &Interrupt,
        shell: &mut Shell,
    ) -> Result<Cluster> {
        let (kubeconfig, plane) = match &flags.context {
            Some(context) => {
                // A copy, so that later changes to the user's kubeconfig have no effect.
                let kubeconfig = workspace.write("kubeconfig", &kubectl.read_kubeconfig()?)?;
                shell.note(&format!("using the cluster of context {context}\n"));
                (kubeconfig, None)
            }
            None => {
                shell.note("starting etcd and kube-apiserver\n");
                let plane = start_plane(dir, interrupt)?;
                shell.note(&format!("the control plane is ready at {}\n", plane.url()));
                (plane.kubeconfig_path().to_owned(), Some(plane))
            }
        };
        shell.note(&format!("kubeconfig: {}\n", kubeconfig.display()));
        Ok(Cluster {
            kubectl: kubectl.for_kubeconfig(&kubeconfig),
            kubeconfig,
            plane,
        })
    }

    pub(super) fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(super) fn is_own(&self) -> bool {
        self.plane.is_some()
    }

    pub(super) fn check_running(&self) -> Result<()> {
        Ok(self.plane.as_ref().map_or(Ok(()), ControlPlane::check_running)?)
    }

    pub(super) fn stop(&self) -> Result<()> {
        Ok(self.plane.as_ref().map_or(Ok(()), ControlPlane::stop)?)
    }
}

fn start_plane(dir: &Path, interrupt: &Interrupt) -> Result<ControlPlane> {
    let assets = Assets::find(find_installed(dir).as_deref()).context(
        "cannot start a control plane; to use a cluster that exists, pass its context with `--context`",
    )?;
    let settings = Settings::from_env()?;
    let cancel = Cancel::default();
    std::thread::scope(|scope| {
        let start = scope.spawn(|| ControlPlane::start(&assets, &settings, &cancel));
        while !start.is_finished() {
            if interrupt.is_asked() {
                cancel.cancel();
            }
            std::thread::sleep(TICK);
        }
        match start.join() {
            Ok(plane) => Ok(plane?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
