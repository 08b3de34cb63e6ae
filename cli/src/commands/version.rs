//! `rbuilder version`: prints the versions of rbuilder, kube and Kubernetes.

use anyhow::Result;

use crate::shell::Shell;

pub(super) fn run(shell: &mut Shell) -> Result<u8> {
    shell.out(&format!(
        "rbuilder {}\nkube 5.0\nKubernetes 1.36\n",
        env!("CARGO_PKG_VERSION")
    ));
    Ok(0)
}
