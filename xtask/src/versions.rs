//! `cargo xtask versions`: updates all files that repeat one of the versions from
//! `rbuilder_catalogue::versions`.
//!
//! We need this because it's not possible to use a constant in manifests or documents. All such
//! files must be in [`PLACES`]. In order to find the ones that are not, `cargo xtask tidy` calls
//! [`find_strays`].
//!
//! If you have changed the version of etcd or kwok below, run this task, and then `go mod tidy` in
//! the folder of the module in tools/.

use anyhow::{Context, Result, ensure};
use rbuilder_catalogue::{Minor, versions};

use crate::peers::minor_of_peer;
use crate::repo;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail if a file repeats another version
    #[arg(long)]
    check: bool,
    /// Ask the Go module proxy for new minor versions of the projects that rbuilder is compared with
    #[arg(long, conflicts_with = "check")]
    pub(crate) peers: bool,
}

/// Which version of etcd to build. It should be used in clusters with [`versions::KUBERNETES`].
const ETCD: &str = "3.7.0";

/// Which version of kwok to build. It simulates nodes in test environments.
const KWOK: &str = "0.7.0";

/// Describes where a version is in a file. It's always the text between `before` and `after`. There
/// may be several occurrences, and you can use `…` in `before` for any text.
struct Place {
    file: &'static str,
    before: &'static str,
    after: &'static str,
    version: fn() -> String,
}

const fn place(
    file: &'static str,
    before: &'static str,
    after: &'static str,
    version: fn() -> String,
) -> Place {
    Place {
        file,
        before,
        after,
        version,
    }
}

#[rustfmt::skip]
const PLACES: &[Place] = &[
    place("Cargo.toml", "\nkube = { version = \"", "\"", || versions::KUBE.into()),
    place("Cargo.toml", "\nk8s-openapi = { version = \"", "\"", || versions::K8S_OPENAPI.into()),
    place("Cargo.toml", "\nrust-version = \"", "\"", || versions::RUST.into()),
    place(".cargo/config.toml", "K8S_OPENAPI_ENABLED_VERSION = \"", "\"", || versions::KUBERNETES.to_string()),
    place("crates/runtime/Cargo.toml", "k8s-openapi = { workspace = true, features = [\"", "\"", feature),
    place("crates/testing/Cargo.toml", "features = [\"v1_", "\"", || versions::KUBERNETES.number().to_string()),
    place("testdata/bench/rust/Cargo.toml", "\nrust-version = \"", "\"", || versions::RUST.into()),
    place("testdata/bench/rust/Cargo.toml", "\nkube = { version = \"", "\"", || versions::KUBE.into()),
    place("testdata/bench/rust/Cargo.toml", "\nk8s-openapi = { version = \"", "\"", || versions::K8S_OPENAPI.into()),
    place("testdata/bench/rust/Cargo.toml", "features = [\"v1_", "\"", || versions::KUBERNETES.number().to_string()),
    place("testdata/oracle/rust/Cargo.toml", "\nkube = \"", "\"", kube_major),
    place("testdata/oracle/rust/Cargo.toml", "\nk8s-openapi = { version = \"", "\"", || versions::K8S_OPENAPI.into()),
    place("testdata/oracle/rust/Cargo.toml", "features = [\"v1_", "\"", || versions::KUBERNETES.number().to_string()),
    place("testdata/oracle/go/go.mod", "\tk8s.io/api v0.", "\n", release),
    place("testdata/oracle/go/go.mod", "\tk8s.io/apiextensions-apiserver v0.", "\n", release),
    place("testdata/oracle/go/go.mod", "\tk8s.io/apimachinery v0.", "\n", release),
    place("tools/kube-apiserver/go.mod", "\tk8s.io/kubernetes v1.", "\n", release),
    place("tools/kube-apiserver/go.mod", "\tk8s.io/component-base v0.", "\n", release),
    place("tools/kube-apiserver/go.mod", " => k8s.io/… v0.", "\n", release),
    place("tools/cel/go.mod", "\tk8s.io/apiextensions-apiserver v0.", "\n", release),
    place("tools/cel/go.mod", "\tk8s.io/apiserver v0.", "\n", release),
    place("tools/kubectl/go.mod", "\tk8s.io/kubectl v0.", "\n", release),
    place("tools/kubectl/go.mod", "\tk8s.io/component-base v0.", "\n", release),
    place("tools/helm/go.mod", "\tk8s.io/client-go v0.", " // indirect", release),
    place("tools/bundle/go.mod", "\tk8s.io/client-go v0.", " // indirect", release),
    place("tools/catalog/go.mod", "\tk8s.io/client-go v0.", " // indirect", release),
    place("tools/etcd/go.mod", "\nrequire go.etcd.io/etcd/server/v3 v", "\n", || ETCD.into()),
    place("tools/kwok/go.mod", "\tsigs.k8s.io/kwok v", " // indirect", || KWOK.into()),
    place("README.md", "
You need Rust ", " or newer", || versions::RUST.into()),
    place("README.md", " Supports Kubernetes ", " with kube ", || format!("{} to {}", Minor::EARLIEST, Minor::LATEST)),
    place("README.md", " with kube ", " and k8s-openapi ", kube_major),
    place("README.md", " and k8s-openapi ", ". ", || versions::K8S_OPENAPI.into()),
    place("docs/from-kubebuilder.md", "with kubebuilder ", ",", || minor_of_peer("kubebuilder")),
    place("docs/from-kubebuilder.md", ", controller-tools ", ",", || minor_of_peer("controller-tools")),
    place("docs/from-kubebuilder.md", ", controller-runtime ", " and operator-sdk", || minor_of_peer("controller-runtime")),
    place("docs/from-kubebuilder.md", " and operator-sdk ", ". ", || minor_of_peer("operator-sdk")),
    place("docs/adopting.md", "\nk8s-openapi = { version = \"", "\"", || versions::K8S_OPENAPI.into()),
    place("docs/adopting.md", "features = [\"v1_", "\"", || versions::KUBERNETES.number().to_string()),
    place("docs/adopting.md", "\nkube = { version = \"", "\"", || versions::KUBE.into()),
    place("docs/types.md", "`Cargo.toml` (`", "`)", feature),
    place("crates/generator/src/codes/source.rs", "k8s-openapi = { version = \\\"", "\\\"", || versions::K8S_OPENAPI.into()),
    place("crates/generator/src/codes/source.rs", "features = [\\\"", "\\\"", feature),
];

/// These files are allowed to contain versions. They are either generated, or say which versions
/// have been measured.
const EXEMPT: &[&str] = &[
    "CHANGELOG.md",
    "crates/catalogue/data/README.md",
    "crates/catalogue/src/versions.rs",
    "docs/codes.md",
    "docs/performance.md",
    "crates/re2/src/tables.rs",
];

fn feature() -> String {
    versions::k8s_openapi_feature(versions::KUBERNETES)
}

fn release() -> String {
    versions::release_of(versions::KUBERNETES)
        .unwrap_or_default()
        .into()
}

pub(crate) fn kube_major() -> String {
    versions::KUBE.split('.').next().unwrap_or_default().into()
}

/// Updates the versions in all files. With `--check`, they are compared instead.
pub(crate) fn write_versions(args: &Args) -> Result<()> {
    let mut stale = Vec::new();
    for place in PLACES {
        let path = repo::root().join(place.file);
        let old = fs_err::read_to_string(&path)?;
        let new = place
            .write(&old)
            .with_context(|| format!("{}: no version follows `{}`", place.file, place.before.trim()))?;
        if old == new {
            continue;
        }
        stale.push(format!(
            "{}: `{}` is not followed by {}",
            place.file,
            place.before.trim(),
            (place.version)()
        ));
        if !args.check {
            fs_err::write(&path, new)?;
        }
    }
    stale.iter().for_each(|line| println!("{line}"));
    if args.check {
        ensure!(
            stale.is_empty(),
            "run `cargo xtask versions`, and `go mod tidy` in a folder of tools/ that it changes"
        );
    }
    println!("{} places, {} of them stale", PLACES.len(), stale.len());
    Ok(())
}

impl Place {
    /// Replaces the version in a text and returns the result. Returns an error if it cannot be
    /// found.
    fn write(&self, text: &str) -> Result<String> {
        let (head, tail) = self.before.split_once('…').unwrap_or((self.before, ""));
        let mut parts = text.split(head);
        let mut written = parts.next().unwrap_or_default().to_owned();
        let mut count = 0;
        for part in parts {
            let find = |text: &str| {
                part.find(text)
                    .with_context(|| format!("`{text}` does not follow"))
            };
            let start = find(tail)? + tail.len();
            let end = part[start..].find(self.after);
            let end = start + end.with_context(|| format!("`{}` does not follow", self.after))?;
            written.push_str(head);
            written.push_str(&part[..start]);
            written.push_str(&(self.version)());
            written.push_str(&part[end..]);
            count += 1;
        }
        ensure!(count > 0, "the text before it is gone");
        Ok(written)
    }
}

/// Returns the numbers of all lines which contain a version that is missing in [`PLACES`]. Tests
/// are ignored, because it's fine if they use other versions.
pub(crate) fn find_strays(path: &str, text: &str) -> Vec<usize> {
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
    let is_generated = path.starts_with("examples/") || path.ends_with("go.sum") || path.ends_with("go.mod");
    if EXEMPT.contains(&path) || is_test || is_generated {
        return Vec::new();
    }
    let places: Vec<_> = PLACES.iter().filter(|place| place.file == path).collect();
    let needles = [
        versions::KUBERNETES.to_string(),
        feature(),
        versions::RUST.to_owned(),
        versions::K8S_OPENAPI.to_owned(),
        format!("kube {}", kube_major()),
        format!("kube-derive {}", kube_major()),
    ];
    let lines = text.lines().enumerate();
    lines
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .filter(|(_, line)| needles.iter().any(|needle| holds_version(line, needle)))
        .filter(|(_, line)| !places.iter().any(|place| line.contains(place.before.trim())))
        .map(|(index, _)| index + 1)
        .collect()
}

/// Returns true if this version is in the line. It doesn't count if it is part of a longer number
/// or word.
fn holds_version(line: &str, version: &str) -> bool {
    line.match_indices(version).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + version.len()..].chars().next();
        !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '.' || letter == '-')
            && !after.is_some_and(|letter| letter.is_ascii_digit() || letter == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_up_to_date() {
        write_versions(&Args {
            check: true,
            peers: false,
        })
        .unwrap();
    }

    #[test]
    fn writes_version_between_delimiters() {
        let place = place("a.toml", "kube = \"", "\"", || "6.1".into());
        assert_eq!(
            place.write("kube = \"5\"\nb = \"5\"\n").unwrap(),
            "kube = \"6.1\"\nb = \"5\"\n"
        );
        assert!(place.write("b = \"5\"\n").is_err());
    }

    #[test]
    fn ellipsis_matches_any_text() {
        let place = place("go.mod", " => k8s.io/… v0.", "\n", || "36.3".into());
        let text = "k8s.io/utils v0.0.1\n\tk8s.io/api => k8s.io/api v0.1.2\n\tk8s.io/x => k8s.io/x v0.1.2\n";
        assert_eq!(place.write(text).unwrap(), text.replace("v0.1.2", "v0.36.3"));
    }

    #[test]
    fn finds_versions_without_place() {
        let version = versions::KUBERNETES.to_string();
        let check = |path: &str, text: &str, expected: &[usize]| {
            assert_eq!(find_strays(path, text), expected, "{path}: {text}");
        };
        check("cli/src/a.rs", &format!("\"Kubernetes {version}\""), &[1]);
        check("cli/src/a.rs", &format!("a\n#[cfg(test)]\n\"{version}\""), &[]);
        check("cli/src/a.rs", &format!("{version}5 0.{version} v{version}"), &[]);
        check("cli/tests/a.rs", &format!("\"{version}\""), &[]);
        check(
            ".cargo/config.toml",
            &format!("K8S_OPENAPI_ENABLED_VERSION = \"{version}\""),
            &[],
        );
    }
}
