//! `rbuilder version`: prints the versions of rbuilder, kube and Kubernetes.

use anyhow::Result;
use rbuilder_generator::versions;

use crate::shell::Shell;

pub(super) fn run(shell: &mut Shell) -> Result<u8> {
    shell.out(&format!(
        "rbuilder {}\nkube {}\nKubernetes {}\n",
        env!("CARGO_PKG_VERSION"),
        versions::KUBE,
        versions::KUBERNETES
    ));
    Ok(0)
}
