//! `cargo xtask versions --peers`: checks whether there are new releases of the projects with which
//! we compare rbuilder.
//!
//! These versions are used in the documentation, the oracle and the benchmarks. Patch releases are
//! ignored.

use anyhow::{Result, bail};

use crate::sh::Cmd;

/// Version of controller-tools. This determines which controller-gen is used by the oracle and the
/// benchmark.
pub(crate) const CONTROLLER_TOOLS: &str = "v0.23.0";

/// A project with which we compare rbuilder.
struct Peer {
    name: &'static str,
    /// The version that we have compared with.
    version: &'static str,
    /// Its module in Go.
    module: &'static str,
    /// Describes what to do if there is a new release.
    errand: &'static str,
}

const PEERS: &[Peer] = &[
    Peer {
        name: "kubebuilder",
        version: "v4.16.0",
        module: "sigs.k8s.io/kubebuilder/v4",
        errand: "scaffold a project with it, and bring cli/src/peers/table.rs and docs/from-kubebuilder.md up to date",
    },
    Peer {
        name: "controller-tools",
        version: CONTROLLER_TOOLS,
        module: "sigs.k8s.io/controller-tools",
        errand: "set CONTROLLER_TOOLS in xtask/src/peers.rs, and run `cargo xtask oracle` and `cargo xtask bench --compare`",
    },
    Peer {
        name: "controller-runtime",
        version: "v0.25.2",
        module: "sigs.k8s.io/controller-runtime",
        errand: "in testdata/bench/go, `go get` it with the minor of k8s.io modules that it requires, and run `go mod tidy`; \
            then run `cargo xtask bench-operator`, update docs/performance.md, and run `cargo xtask pictures`",
    },
    Peer {
        name: "operator-sdk",
        version: "v1.42.3",
        module: "github.com/operator-framework/operator-sdk",
        errand: "compare its bundles and commands with docs/olm.md and cli/src/peers/table.rs",
    },
    Peer {
        name: "Kubernetes",
        version: "v1.37.2",
        module: "k8s.io/kubernetes",
        errand: "follow the steps in crates/catalogue/src/versions.rs",
    },
];

/// Returns the minor version of a peer in the format used in documents, e.g. `4.16`.
pub(crate) fn minor_of_peer(name: &str) -> String {
    let peer = PEERS.iter().find(|peer| peer.name == name);
    peer.map(|peer| minor(peer.version)).unwrap_or_default()
}

/// Checks if there's a newer release of any peer. If a module isn't available on the proxy, it is
/// skipped with a message.
///
/// # Errors
///
/// Returns an error if a peer has a newer minor version or Go is missing.
pub(crate) fn check_peers() -> Result<()> {
    let mut moved = 0;
    for peer in PEERS {
        let newest = Cmd::new("go list -m -f {{.Version}}")
            .arg(format!("{}@latest", peer.module))
            .env("GOFLAGS", "-mod=mod")
            .dir(&std::env::temp_dir())
            .read();
        let Ok(newest) = newest else {
            println!("{}: the module proxy does not say", peer.name);
            continue;
        };
        let newest = newest.trim();
        match minor(newest) == minor(peer.version) {
            true => println!("{} {} is the newest minor", peer.name, peer.version),
            false => {
                moved += 1;
                println!(
                    "{} has moved from {} to {newest}: {}",
                    peer.name, peer.version, peer.errand
                );
            }
        }
    }
    match moved {
        0 => Ok(()),
        _ => bail!("{moved} of {} have moved", PEERS.len()),
    }
}

/// Returns the minor version of a version. There's no `v` at the start.
fn minor(version: &str) -> String {
    let numbers = version.trim_start_matches('v').split('.');
    numbers.take(2).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patch_release_is_ignored() {
        for (version, expected) in [
            ("v4.16.0", "4.16"),
            ("v0.25.2", "0.25"),
            ("1.37.1", "1.37"),
            ("v1.43.0-rc.1", "1.43"),
        ] {
            assert_eq!(minor(version), expected, "{version}");
        }
        assert_eq!(minor_of_peer("kubebuilder"), "4.16");
    }

    #[test]
    fn benchmark_uses_compared_version() {
        let text = fs_err::read_to_string(crate::repo::root().join("testdata/bench/go/go.mod")).unwrap();
        let peer = PEERS
            .iter()
            .find(|peer| peer.name == "controller-runtime")
            .unwrap();
        assert!(
            text.contains(&format!("{} {}", peer.module, peer.version)),
            "{text}"
        );
    }
}
