//! `cargo xtask versions --peers`: checks whether there are new releases of the projects with which
//! we compare rbuilder.
//!
//! These versions are used in the documentation, the oracle and the benchmarks. Patch releases are
//! ignored.

use anyhow::{Result, bail};
use serde::Deserialize;

use crate::sh::Cmd;

/// A row of peers.yaml.
#[derive(Deserialize)]
struct Peer {
    name: String,
    version: String,
    module: String,
    errand: String,
}

fn peers() -> Vec<Peer> {
    serde_saphyr::from_str(include_str!("peers.yaml")).expect("peers.yaml is a list of peers")
}

/// Returns the minor version of a peer in the format used in documents, e.g. `4.16`.
pub(crate) fn minor_of_peer(name: &str) -> String {
    let peer = peers().into_iter().find(|peer| peer.name == name);
    peer.map(|peer| minor(&peer.version)).unwrap_or_default()
}

/// Checks if there's a newer release of any peer. If a module isn't available on the proxy, it is
/// skipped with a message.
pub(crate) fn check_peers() -> Result<()> {
    let (peers, mut moved) = (peers(), 0);
    for peer in &peers {
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
        match minor(newest) == minor(&peer.version) {
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
        _ => bail!("{moved} of {} have moved", peers.len()),
    }
}

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
    fn controller_gen_has_compared_version() {
        let version = crate::tools::version_of("controller-gen").unwrap();
        assert_eq!(minor(&version), minor_of_peer("controller-tools"));
    }

    #[test]
    fn benchmark_uses_compared_version() {
        let text = fs_err::read_to_string(crate::repo::root().join("testdata/bench/go/go.mod")).unwrap();
        let is_it = |peer: &Peer| peer.name == "controller-runtime";
        let peer = peers().into_iter().find(is_it).unwrap();
        assert!(
            text.contains(&format!("{} {}", peer.module, peer.version)),
            "{text}"
        );
    }
}
