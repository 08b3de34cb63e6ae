//! `cargo xtask e2e`: runs the end-to-end test of a scaffold on a machine without containers.
//!
//! We check that `make test-e2e` passes, and that it fails with a report if there is no manager.
//! After that, we check that `rbuilder undeploy` keeps other objects in a namespace that is shared.
//!
//! The cluster's controllers are the real ones from Kubernetes. Nodes are only simulated, and
//! report all Pods as ready. Since we can't run containers, the manager is a process outside of the
//! cluster. There are stand-ins for kind and docker (both do nothing), and `kubectl port-forward`
//! just prints the port of the manager's process. Nothing else is replaced, e.g. this uses the real
//! make, Pod Security and garbage collector.

use std::net::TcpListener;

use anyhow::Result;

use crate::control_plane::ControlPlane;
use crate::project::scaffold;
use crate::run::{BASH, run_script};
use crate::{assets, repo};

/// We need a kind without a group whose controller has a custom name, and an imported kind. The
/// controller of the latter is only a stub that never sets the status.
const COMMANDS: &[&str] = &[
    "init --domain example.com --library path",
    "create api --version v1alpha1 --kind Memcached --controller-name runner",
    "create api --from-crd ../backup.yaml",
];

/// The CRD of the second kind. It's written to a file next to the project.
const BACKUP: &str = include_str!("backup.yaml");

/// Runs the test twice, with and without a manager. Then checks `rbuilder undeploy`.
pub(crate) fn check_end_to_end() -> Result<()> {
    let bin = repo::build_rbuilder()?;
    let folder = tempfile::Builder::new().prefix("rbuilder-e2e-").tempdir()?;
    let project = folder.path().join("memcached-operator");
    fs_err::write(folder.path().join("backup.yaml"), BACKUP)?;
    scaffold(&bin, &project, COMMANDS)?;
    let plane = ControlPlane::start_with_nodes(&assets::ensure_controllers()?)?;
    let metrics = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let walk = repo::project_command(&project, BASH)
        .env("METRICS", metrics.to_string())
        .env("KUBECONFIG", plane.kubeconfig())
        // cargo and make set these for child processes.
        .without("CARGO")
        .without("MAKEFLAGS");
    let kubectl = assets::ensure_kubectl()?;
    run_script(walk, include_str!("walk.sh"), &[kubectl.as_deref(), Some(&bin)])
}
