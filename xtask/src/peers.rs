//! `cargo xtask versions --peers`: the projects that rbuilder is compared with, and whether they have released since.
//!
//! Documents, the oracle and the benchmarks compare with these versions. A newer patch changes nothing of what is compared.

use anyhow::{Result, bail};

use crate::sh::Cmd;

/// controller-tools, whose controller-gen the oracle and the benchmark run.
pub(crate) const CONTROLLER_TOOLS: &str = "v0.23.0";

/// A project that rbuilder is compared with.
struct Peer {
    name: &'static str,
    /// The version that is compared with.
    version: &'static str,
    /// Its Go module.
    module: &'static str,
    /// What to do when it has moved.
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
        errand: "go on with \"The next version of controller-runtime in the benchmark\" in ARCHITECTURE.md",
    },
    Peer {
        name: "operator-sdk",
        version: "v1.42.3",
        module: "github.com/operator-framework/operator-sdk",
        errand: "compare its bundles and commands with docs/olm.md and cli/src/peers/table.rs",
    },
    Peer {
        name: "Kubernetes",
        version: "v1.37.1",
        module: "k8s.io/kubernetes",
        errand: "go on with \"The next Kubernetes minor\" in ARCHITECTURE.md",
    },
];

/// Returns the version of a peer as documents write it, without the patch: `4.16`.
pub(crate) fn minor_of_peer(name: &str) -> String {
    let peer = PEERS.iter().find(|peer| peer.name == name);
    peer.map(|peer| minor(peer.version)).unwrap_or_default()
}

/// Compares each peer with its newest release.
///
/// # Errors
///
/// A peer has released a minor version since, or Go is missing. A module that the proxy does not serve is named and passed over.
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

/// Returns a version without its leading `v` and without what follows the minor.
fn minor(version: &str) -> String {
    let numbers = version.trim_start_matches('v').split('.');
    numbers.take(2).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_no_move() {
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
    fn the_benchmark_has_the_version_that_is_compared_with() {
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
