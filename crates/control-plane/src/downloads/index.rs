//! The index of published archives.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::selector::Selector;
use crate::{Platform, Release, Version};

/// URL of the index maintained by the Kubernetes project.
pub const DEFAULT_URL: &str =
    "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml";

/// Maximum size of an index in bytes. The published one has 70 KB.
pub const LARGEST: u64 = 8 << 20;

/// Archives by release.
#[derive(Debug, Default)]
pub struct Index(BTreeMap<Release, Archive>);

/// A published archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// The URL of the archive.
    pub url: String,
    /// The sha512 checksum of the archive, in lower-case hexadecimal.
    pub sha512: String,
}

/// Only the names of archives are used, since the keys above them repeat the version.
#[derive(Deserialize)]
struct File {
    releases: BTreeMap<String, BTreeMap<String, Entry>>,
}

#[derive(Deserialize)]
struct Entry {
    hash: String,
    #[serde(rename = "selfLink")]
    self_link: String,
}

impl Index {
    /// Parses an index. Archives with unknown names, such as pre-releases, are skipped.
    ///
    /// # Errors
    ///
    /// Returns an error if the text isn't an index, or if an archive in it lacks a sha512 checksum.
    pub fn parse(text: &str) -> Result<Index> {
        let file: File = rbuilder_yaml::parse(text).context(
            "expected a YAML mapping `releases` of versions to archives with `hash` and `selfLink`",
        )?;
        let mut index = Index::default();
        for (name, entry) in file.releases.into_values().flatten() {
            let Some(release) = Release::from_archive(&name) else {
                continue;
            };
            if !is_sha512(&entry.hash) {
                bail!(
                    "expected 128 lower-case hexadecimal digits in the `hash` of `{name}`, found `{}`",
                    entry.hash
                );
            }
            let archive = Archive {
                url: entry.self_link,
                sha512: entry.hash,
            };
            index.0.insert(release, archive);
        }
        Ok(index)
    }

    /// The releases for a platform, newest first.
    pub fn releases<'a>(&'a self, platform: &'a Platform) -> impl Iterator<Item = &'a Release> {
        self.0
            .keys()
            .rev()
            .filter(move |release| release.platform == *platform)
    }

    /// All releases, newest first.
    pub fn all(&self) -> impl Iterator<Item = &Release> {
        self.0.keys().rev()
    }

    /// The archive of a release.
    pub fn archive(&self, release: &Release) -> Option<&Archive> {
        self.0.get(release)
    }

    /// Finds the newest matching release for a platform.
    ///
    /// # Errors
    ///
    /// Returns an error that lists the available versions or platforms.
    pub fn find<'a>(&'a self, selector: &Selector, platform: &'a Platform) -> Result<&'a Release> {
        let mut found = self.releases(platform);
        match found.find(|release| selector.matches(release.version)) {
            Some(release) => Ok(release),
            None => bail!(self.describe_missing(selector, platform)),
        }
    }

    fn describe_missing(&self, selector: &Selector, platform: &Platform) -> String {
        // The version exists, so a hint about other platforms is more useful.
        if let Some(elsewhere) = self.all().find(|release| selector.matches(release.version)) {
            let version = elsewhere.version;
            let platforms = self.all().filter(|release| release.version == version);
            let platforms: Vec<String> = platforms
                .map(|release| format!("`{}`", release.platform))
                .collect();
            return format!(
                "the index has no Kubernetes {selector} for `{platform}`; {version} is available for {}: pass `--os` and \
                 `--arch`",
                platforms.join(", ")
            );
        }
        let here: Vec<Version> = self.releases(platform).map(|release| release.version).collect();
        let near: Vec<Version> = here
            .iter()
            .copied()
            .filter(|version| selector.is_near(*version))
            .collect();
        let (shown, sort) = if near.is_empty() {
            (here, "versions")
        } else {
            (near, "patches")
        };
        if shown.is_empty() {
            return format!("the index has no Kubernetes for `{platform}`: pass `--os` and `--arch`");
        }
        let shown: Vec<String> = shown.iter().map(Version::to_string).collect();
        format!(
            "the index has no Kubernetes {selector}; it has these {sort} for `{platform}`: {}",
            shown.join(", ")
        )
    }
}

/// Checks if a string is a sha512 checksum in the index's notation.
pub fn is_sha512(text: &str) -> bool {
    text.len() == 128 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Rewrites a URL to use a mirror, replacing scheme and host but not the path.
///
/// # Errors
///
/// Returns an error if the URL isn't absolute.
pub fn mirrored(url: &str, mirror: &str) -> Result<String> {
    let (_, rest) = url
        .split_once("://")
        .with_context(|| format!("expected an absolute URL, found `{url}`"))?;
    let path = rest.split_once('/').map_or("", |(_, path)| path);
    Ok(format!("{}/{path}", mirror.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(archives: &[&str]) -> Index {
        let mut text = "releases:\n  v1.0.0:\n".to_owned();
        for name in archives {
            let hash = "0a".repeat(64);
            text.push_str(&format!(
                "    {name}:\n      hash: {hash}\n      selfLink: https://example.com/{name}\n"
            ));
        }
        Index::parse(&text).unwrap()
    }

    fn published() -> Index {
        index(&[
            "envtest-v1.28.0-linux-amd64.tar.gz",
            "envtest-v1.36.0-linux-amd64.tar.gz",
            "envtest-v1.36.2-linux-amd64.tar.gz",
            "envtest-v1.36.2-darwin-arm64.tar.gz",
            "envtest-v1.37.0-alpha.3-linux-amd64.tar.gz",
        ])
    }

    fn find(selector: &str, os: &str, arch: &str) -> Result<String, String> {
        let (os, arch) = (os.to_owned(), arch.to_owned());
        let (index, platform) = (published(), Platform { os, arch });
        let found = index.find(&selector.parse().unwrap(), &platform);
        found.map(Release::directory).map_err(|error| error.to_string())
    }

    #[test]
    fn finds_newest_release() {
        for (selector, expected) in [
            ("latest", "1.36.2-linux-amd64"),
            ("1.36", "1.36.2-linux-amd64"),
            ("1.36.0", "1.36.0-linux-amd64"),
            ("<1.36", "1.28.0-linux-amd64"),
        ] {
            assert_eq!(find(selector, "linux", "amd64").as_deref(), Ok(expected));
        }
    }

    #[test]
    fn error_lists_available_versions() {
        for (selector, os, arch, expected) in [
            (
                "1.36.3",
                "linux",
                "amd64",
                "these patches for `linux/amd64`: 1.36.2, 1.36.0",
            ),
            (
                "1.38",
                "linux",
                "amd64",
                "these versions for `linux/amd64`: 1.36.2, 1.36.0, 1.28.0",
            ),
            ("1.28", "darwin", "arm64", "1.28.0 is available for `linux/amd64`"),
            ("1.99", "plan9", "mips", "no Kubernetes for `plan9/mips`"),
        ] {
            let error = find(selector, os, arch).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn rejects_invalid_indexes() {
        for text in [
            "",
            "[]",
            "releases: 1",
            "releases:\n  v1.36.2: {envtest-v1.36.2-linux-amd64.tar.gz: {hash: a}}",
        ] {
            assert!(Index::parse(text).is_err(), "{text}");
        }
        let entry = "{hash: ABC, selfLink: 'https://example.com'}";
        let text = format!(
            "releases: {{v1: {{envtest-v1.36.2-linux-amd64.tar.gz: {entry}, other.tar.gz: {entry}}}}}"
        );
        let error = Index::parse(&text).unwrap_err().to_string();
        assert!(error.contains("found `ABC`"), "{error}");
    }

    #[test]
    fn mirror_replaces_scheme_and_host() {
        let check = |mirror, expected: &str| {
            assert_eq!(
                mirrored("https://github.com/a/b.tar.gz", mirror).unwrap(),
                expected
            );
        };
        check(
            "http://mirror.example.com",
            "http://mirror.example.com/a/b.tar.gz",
        );
        check(
            "https://example.com/github/",
            "https://example.com/github/a/b.tar.gz",
        );
        assert!(mirrored("a/b.tar.gz", "https://example.com").is_err());
    }
}
