//! `cargo xtask versions`: updates all files that repeat one of the versions from
//! `rbuilder_catalogue::versions`.
//!
//! We need this because it's not possible to use a constant in manifests or documents. All such
//! files must be in versions.yaml. In order to find the ones that are not, `cargo xtask tidy` calls
//! [`find_strays`].
//!
//! If you have changed the version of etcd or kwok below, run this task, and then `go mod tidy` in
//! the folder of the module in tools/.

use std::collections::BTreeMap;
use std::sync::LazyLock;

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

/// The text before a version, the text after it, and the name of the version.
type Place = (String, String, String);

static PLACES: LazyLock<BTreeMap<String, Vec<Place>>> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("versions.yaml")).expect("versions.yaml is a map of places")
});

fn version_of(name: &str) -> Result<String> {
    Ok(match name {
        "etcd" => ETCD.into(),
        "feature" => feature(),
        "k8s-openapi" => versions::K8S_OPENAPI.into(),
        "kube" => versions::KUBE.into(),
        "kube-major" => kube_major(),
        "kubernetes" => versions::KUBERNETES.to_string(),
        "kwok" => KWOK.into(),
        "minor" => versions::KUBERNETES.number().to_string(),
        "range" => format!("{} to {}", Minor::EARLIEST, Minor::LATEST),
        "release" => {
            let release = versions::release_of(versions::KUBERNETES);
            release.context("the minor has no release")?.into()
        }
        "rust" => versions::RUST.into(),
        peer => {
            let minor = minor_of_peer(peer);
            ensure!(!minor.is_empty(), "there is no version `{peer}`");
            minor
        }
    })
}

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

pub(crate) fn kube_major() -> String {
    versions::KUBE.split('.').next().unwrap_or_default().into()
}

/// Updates the versions in all files. With `--check`, they are compared instead.
pub(crate) fn write_versions(args: &Args) -> Result<()> {
    let (mut stale, mut count) = (Vec::new(), 0);
    for (file, places) in &*PLACES {
        let path = repo::root().join(file);
        let old = fs_err::read_to_string(&path)?;
        let mut new = old.clone();
        for (before, after, name) in places {
            let version = version_of(name)?;
            let replaced = replace(&new, before, after, &version);
            let replaced =
                replaced.with_context(|| format!("{file}: no version follows `{}`", before.trim()))?;
            if replaced != new {
                stale.push(format!(
                    "{file}: `{}` is not followed by {version}",
                    before.trim()
                ));
            }
            new = replaced;
            count += 1;
        }
        if new != old && !args.check {
            fs_err::write(&path, new)?;
        }
    }
    stale.iter().for_each(|line| println!("{line}"));
    ensure!(
        stale.is_empty() || !args.check,
        "run `cargo xtask versions`, and `go mod tidy` in a folder of tools/ that it changes"
    );
    println!("{count} places, {} of them stale", stale.len());
    Ok(())
}

/// Replaces the version between two texts. Returns an error if it cannot be found.
fn replace(text: &str, before: &str, after: &str, version: &str) -> Result<String> {
    let (head, tail) = before.split_once('…').unwrap_or((before, ""));
    let mut parts = text.split(head);
    let mut written = parts.next().unwrap_or_default().to_owned();
    ensure!(written.len() < text.len(), "the text before it is gone");
    for part in parts {
        let follows = |text: &str| format!("`{text}` does not follow");
        let start = part.find(tail).with_context(|| follows(tail))? + tail.len();
        let end = part[start..].find(after).with_context(|| follows(after))?;
        written += &format!("{head}{}{version}{}", &part[..start], &part[start + end..]);
    }
    Ok(written)
}

/// Returns the numbers of all lines which contain a version that is missing in versions.yaml. Tests
/// are ignored, because it's fine if they use other versions.
pub(crate) fn find_strays(path: &str, text: &str) -> Vec<usize> {
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
    let is_generated = path.starts_with("examples/") || path.ends_with("go.sum") || path.ends_with("go.mod");
    if EXEMPT.contains(&path) || is_test || is_generated {
        return Vec::new();
    }
    let places = PLACES.get(path).map(Vec::as_slice).unwrap_or_default();
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
        .filter(|(_, line)| !places.iter().any(|(before, ..)| line.contains(before.trim())))
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
        let write = |text| replace(text, "kube = \"", "\"", "6.1");
        let text = "kube = \"5\"\nb = \"5\"\n";
        assert_eq!(write(text).unwrap(), "kube = \"6.1\"\nb = \"5\"\n");
        assert!(write("b = \"5\"\n").is_err());
    }

    #[test]
    fn ellipsis_matches_any_text() {
        let text = "k8s.io/utils v0.0.1\n\tk8s.io/api => k8s.io/api v0.1.2\n\tk8s.io/x => k8s.io/x v0.1.2\n";
        let written = replace(text, " => k8s.io/… v0.", "\n", "36.3").unwrap();
        assert_eq!(written, text.replace("v0.1.2", "v0.36.3"));
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
