//! `rbuilder version`: prints the versions of rbuilder, kube and Kubernetes, and the commit that
//! rbuilder was built from.

use anyhow::Result;
use rbuilder_generator::versions;
use rbuilder_project::library::recorded_commit;

use crate::shell::Shell;

pub(super) fn run(shell: &mut Shell) -> Result<u8> {
    let commit = recorded_commit().unwrap_or("unknown");
    shell.out(&format!(
        "rbuilder {}\ncommit {commit}\nkube {}\nKubernetes {}\n",
        env!("CARGO_PKG_VERSION"),
        versions::KUBE,
        versions::KUBERNETES
    ));
    Ok(0)
}
