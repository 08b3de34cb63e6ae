//! `rbuilder version`: prints the versions of rbuilder, kube and Kubernetes, and the commit that rbuilder was built from.

use anyhow::Result;
use rbuilder_generator::versions;

use crate::shell::Shell;

pub(super) fn run(shell: &mut Shell) -> Result<u8> {
    // Empty if git was missing during the build. Also empty in debug builds, which change without a
    // commit.
    let commit = match env!("RBUILDER_COMMIT") {
        "" => "unknown",
        commit => commit,
    };
    shell.out(&format!(
        "rbuilder {}\ncommit {commit}\nkube {}\nKubernetes {}\n",
        env!("CARGO_PKG_VERSION"),
        versions::KUBE,
        versions::KUBERNETES
    ));
    Ok(0)
}
