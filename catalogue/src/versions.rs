//! The versions of other projects that rbuilder is made for.
//!
//! Scaffold, documents and checks take them from here. Files that cannot ask (manifests, documents) repeat them:
//! `cargo xtask versions` writes them there, and `cargo xtask tidy` finds a repeat that it does not know.

use crate::Minor;

/// Requirement on kube of projects and of this workspace.
pub const KUBE: &str = "5.0";

/// Requirement on k8s-openapi of projects and of this workspace; kube names the one that it works with.
pub const K8S_OPENAPI: &str = "0.29";

/// Kubernetes minor that scaffolded projects are built for, and whose kube-apiserver the tests run.
pub const KUBERNETES: Minor = Minor::of(36);

/// The oldest Rust that compiles this workspace and scaffolded projects: `rust-version` in Cargo.toml, where cargo reads it.
pub const RUST: &str = env!("CARGO_PKG_RUST_VERSION");

/// The release of each minor that the catalogue is made from and, for [`KUBERNETES`], that kube-apiserver is built from:
/// the newest that the Go module proxy has whole.
pub const RELEASES: &[(Minor, &str)] = &[
    (Minor::of(33), "33.13"),
    (Minor::of(34), "34.4"),
    (Minor::of(35), "35.4"),
    (Minor::of(36), "36.3"),
    (Minor::of(37), "37.1"),
];

/// The feature of k8s-openapi for a minor: `v1_35`.
pub fn k8s_openapi_feature(minor: Minor) -> String {
    format!("v1_{}", minor.number())
}

/// The newest minor of Kubernetes that k8s-openapi 0.`release` has: each release since the twentieth brings one.
pub fn newest_minor_of(release: u8) -> u8 {
    let ahead = if release < 19 { 9 } else { 8 };
    release.saturating_add(ahead)
}

/// The release of a minor without the leading `1.`: `35.4`.
pub fn release_of(minor: Minor) -> Option<&'static str> {
    let mut releases = RELEASES.iter();
    releases.find(|(of, _)| *of == minor).map(|(_, release)| *release)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_k8s_openapi_have_a_newest_minor() {
        let own = K8S_OPENAPI
            .strip_prefix("0.")
            .and_then(|release| release.parse().ok());
        assert_eq!(own.map(newest_minor_of), Some(Minor::LATEST.number()));
        for (release, minor) in [(13, 22), (18, 27), (19, 27), (20, 28), (25, 33), (28, 36)] {
            assert_eq!(newest_minor_of(release), minor, "{release}");
        }
    }

    #[test]
    fn each_minor_has_a_release() {
        assert!(Minor::all().eq(RELEASES.iter().map(|(minor, _)| *minor)));
        for (minor, release) in RELEASES {
            assert!(release.starts_with(&format!("{}.", minor.number())), "{release}");
            assert_eq!(release_of(*minor), Some(*release));
        }
    }
}
