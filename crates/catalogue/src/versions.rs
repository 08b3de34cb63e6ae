//! The versions of other projects that rbuilder supports.
//!
//! Scaffolding, documentation and checks use these constants. Files that cannot use them
//! (manifests, documents) contain copies: `cargo xtask versions` updates the copies, and
//! `cargo xtask tidy` reports unknown ones.
//!
//! # The next Kubernetes minor
//!
//! When k8s-openapi supports it (here 1.38):
//!
//! 1. Raise [`KUBE`] and [`K8S_OPENAPI`], add a release to [`RELEASES`], and raise
//!    `Minor::LATEST`. In `compiled.rs`, turn `k8s_if_ge_1_37` into `k8s_if_1_37`, add a line for
//!    the new minor and raise the number in the assertion.
//! 2. Adapt the expected minors in the tests of this file and of `minor.rs` (the first unknown
//!    feature, the nearest minor), in `crates/generator/src/cargo/{manifest,tests}.rs` and
//!    `crates/generator/tests/kubernetes_minor.rs`. Refresh the golden
//!    `crates/generator/tests/cases/warning_kubernetes/stderr`.
//! 3. Run `cargo xtask catalogue`, which downloads the published documents, and `cargo xtask
//!    versions`.
//!
//! To build projects and tests for it:
//!
//! 1. Raise [`KUBERNETES`], and `ETCD` in `xtask/src/versions.rs`. Run `cargo xtask versions`.
//! 2. Change by hand: the feature of k8s-openapi in tests (`git grep "v1_[0-9]"`) and in
//!    `examples/plain-kube-rs/Cargo.toml`, kube-openapi in `tools/formats/go.mod`, the modules in
//!    `tools/health/go.mod`, and the version of Kubernetes in `xtask/src/peers.yaml`. Run `go mod
//!    tidy` in each directory of tools/. A test of `xtask/src/assets.rs` reports versions that
//!    differ from those of kube-apiserver.
//! 3. Record again what the API server says, and read the differences: `cargo xtask cel`,
//!    `formats`, `patterns`, `mutations`, `objects`, `protobuf`, `tables` and `health`. No task records
//!    `crates/schema/tests/defaults.jsonl`: `cargo test --workspace --test twin recorded_default`
//!    with the new server reports the lines to change. Follow new rules in `rbuilder-cel`,
//!    `rbuilder-schema` and `rbuilder-judge`. Do the same for controller-gen: the modules of
//!    `testdata/oracle/go`, and `cargo xtask oracle`.
//! 4. Refresh the goldens of the command, run `cargo xtask examples`, and describe what changes for
//!    users in docs/upgrading.md.

use crate::Minor;

/// Version requirement for kube, in projects and in this workspace.
pub const KUBE: &str = "5.0";

/// Version requirement for k8s-openapi, in projects and in this workspace. Must match the
/// requirement of kube.
pub const K8S_OPENAPI: &str = "0.29";

/// Kubernetes minor that scaffolded projects are built for, and whose kube-apiserver is used in
/// tests.
pub const KUBERNETES: Minor = Minor::of(37);

/// Minimum supported Rust version of this workspace and of scaffolded projects: `rust-version` in
/// Cargo.toml.
pub const RUST: &str = env!("CARGO_PKG_RUST_VERSION");

/// The release from which each minor's catalogue is created. For [`KUBERNETES`], kube-apiserver is
/// built from it as well. Always use the newest release that is complete on the Go module proxy.
pub const RELEASES: &[(Minor, &str)] = &[
    (Minor::of(33), "33.13"),
    (Minor::of(34), "34.4"),
    (Minor::of(35), "35.4"),
    (Minor::of(36), "36.3"),
    (Minor::of(37), "37.2"),
];

/// Returns the feature of k8s-openapi for a minor, e.g. `v1_35`.
pub fn k8s_openapi_feature(minor: Minor) -> String {
    format!("v1_{}", minor.number())
}

/// Returns true if k8s-openapi's types for a minor (e.g. `1.37`) require the `spec` of a
/// Deployment, DaemonSet, ReplicaSet or StatefulSet. It's an `Option` up to 1.36.
pub fn requires_apps_spec(minor: &str) -> bool {
    let number = minor.strip_prefix("1.").and_then(|number| number.parse().ok());
    number.is_none_or(|number: u8| number >= 37)
}

/// Returns the newest Kubernetes minor in k8s-openapi 0.`release`. Since 0.20, each release adds
/// one.
pub fn newest_minor_of(release: u8) -> u8 {
    let ahead = if release < 19 { 9 } else { 8 };
    release.saturating_add(ahead)
}

/// The release of a minor without the leading `1.`, e.g. `35.4`.
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
    fn apps_spec_is_required_from_1_37() {
        let required: Vec<String> = (Minor::all().map(|minor| minor.to_string()))
            .filter(|minor| requires_apps_spec(minor))
            .collect();
        assert_eq!(required, ["1.37"]);
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
