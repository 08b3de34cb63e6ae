//! Version selectors in `setup-envtest` notation: `1.35`, `1.35.x`, `~1.35.1`, `<1.35`, `latest`.

use std::fmt;
use std::str::FromStr;

use crate::{Version, parse_number};

/// Selects the versions that a command operates on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    range: Range,
    /// Where to look for a version.
    pub search: Search,
    text: String,
}

/// A minor version without a patch includes all its patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    All,
    Exactly(Pattern),
    /// E.g. `~1.35.1`, which also selects later patches of the same minor version.
    SameMinor(Pattern),
    Below(Pattern),
    AtMost(Pattern),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pattern {
    major: u32,
    minor: u32,
    patch: Option<u32>,
}

/// Where to look for a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// In the store, falling back to the index if there's no matching version.
    StoreFirst,
    /// In the store only.
    Store,
    /// In both. The newer version wins.
    Both,
}

impl Selector {
    /// Selects all versions in the store.
    pub fn all() -> Selector {
        Selector {
            range: Range::All,
            search: Search::Store,
            text: "any version".to_owned(),
        }
    }

    /// Selects all patches of a minor version of Kubernetes 1.
    pub fn minor(minor: u32) -> Selector {
        Selector {
            range: Range::Exactly(Pattern {
                major: 1,
                minor,
                patch: None,
            }),
            search: Search::StoreFirst,
            text: format!("1.{minor}"),
        }
    }

    /// Returns true if the selector includes a version.
    pub fn matches(&self, version: Version) -> bool {
        match self.range {
            Range::All => true,
            Range::Exactly(pattern) => pattern.matches(version),
            Range::SameMinor(pattern) => {
                pattern.is_minor_of(version) && version.patch >= pattern.patch.unwrap_or(0)
            }
            Range::Below(pattern) => pattern.is_above(version),
            Range::AtMost(pattern) => pattern.is_above(version) || pattern.matches(version),
        }
    }

    /// Checks if a version has the same minor version as the selector.
    pub fn is_near(&self, version: Version) -> bool {
        match self.range {
            Range::All => true,
            Range::Exactly(pattern)
            | Range::SameMinor(pattern)
            | Range::Below(pattern)
            | Range::AtMost(pattern) => pattern.is_minor_of(version),
        }
    }

    /// The version, if the selector names exactly one.
    pub fn version(&self) -> Option<Version> {
        match self.range {
            Range::Exactly(Pattern {
                major,
                minor,
                patch: Some(patch),
            }) => Some(Version { major, minor, patch }),
            _ => None,
        }
    }
}

impl Pattern {
    fn is_minor_of(self, version: Version) -> bool {
        (self.major, self.minor) == (version.major, version.minor)
    }

    fn matches(self, version: Version) -> bool {
        self.is_minor_of(version) && self.patch.is_none_or(|patch| patch == version.patch)
    }

    /// A minor version is above all earlier minor versions, but not above its own patches. Hence
    /// `<1.35` excludes `1.35.2`.
    fn is_above(self, version: Version) -> bool {
        let Pattern { major, minor, patch } = self;
        match patch {
            Some(patch) => version < Version { major, minor, patch },
            None => (version.major, version.minor) < (major, minor),
        }
    }
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (range, search) = parse_selector(text).ok_or_else(|| {
            format!("expected `1.35.2`, `1.35`, `~1.35.1`, `<1.35`, `<=1.35.2`, `latest` or `latest-on-disk`, found `{text}`")
        })?;
        let text = text.to_owned();
        Ok(Selector { range, search, text })
    }
}

fn parse_selector(text: &str) -> Option<(Range, Search)> {
    match text {
        "latest" => return Some((Range::All, Search::Both)),
        "latest-on-disk" => return Some((Range::All, Search::Store)),
        _ => {}
    }
    let (text, search) = match text.strip_suffix('!') {
        Some(text) => (text, Search::Both),
        None => (text, Search::StoreFirst),
    };
    let range = if let Some(pattern) = text.strip_prefix('~') {
        Range::SameMinor(parse_pattern(pattern)?)
    } else if let Some(pattern) = text.strip_prefix("<=") {
        Range::AtMost(parse_pattern(pattern)?)
    } else if let Some(pattern) = text.strip_prefix('<') {
        Range::Below(parse_pattern(pattern)?)
    } else {
        Range::Exactly(parse_pattern(text)?)
    };
    Some((range, search))
}

/// Accepts `1.35`, `1.35.x`, `1.35.*` and `1.35.2`, optionally prefixed with `v` as in tags.
fn parse_pattern(text: &str) -> Option<Pattern> {
    let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.');
    let major = parse_number(parts.next()?)?;
    let minor = parse_number(parts.next()?)?;
    let patch = match parts.next() {
        None | Some("x" | "*") => None,
        Some(patch) => Some(parse_number(patch)?),
    };
    Some(Pattern { major, minor, patch })
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSIONS: [&str; 6] = ["1.28.0", "1.35.0", "1.36.0", "1.36.1", "1.36.2", "1.37.0"];

    #[test]
    fn selectors_match_versions() {
        for (text, expected) in [
            ("1.36.2", &["1.36.2"][..]),
            ("v1.36.2", &["1.36.2"]),
            ("1.36", &["1.36.0", "1.36.1", "1.36.2"]),
            ("1.36.x", &["1.36.0", "1.36.1", "1.36.2"]),
            ("1.36.*!", &["1.36.0", "1.36.1", "1.36.2"]),
            ("~1.36.1", &["1.36.1", "1.36.2"]),
            ("~1.36", &["1.36.0", "1.36.1", "1.36.2"]),
            ("<1.36", &["1.28.0", "1.35.0"]),
            ("<1.36.x", &["1.28.0", "1.35.0"]),
            ("<1.36.1", &["1.28.0", "1.35.0", "1.36.0"]),
            ("<=1.35", &["1.28.0", "1.35.0"]),
            ("<=1.36.1", &["1.28.0", "1.35.0", "1.36.0", "1.36.1"]),
            ("latest", &VERSIONS),
            ("latest-on-disk", &VERSIONS),
        ] {
            let selector: Selector = text.parse().unwrap();
            let matched = VERSIONS
                .into_iter()
                .filter(|version| selector.matches(version.parse().unwrap()));
            assert_eq!(matched.collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn selectors_choose_where_to_search() {
        let search = |text: &str| text.parse::<Selector>().unwrap().search;
        assert_eq!(search("1.36"), Search::StoreFirst);
        assert_eq!(search("1.36!"), Search::Both);
        assert_eq!(search("latest"), Search::Both);
        assert_eq!(search("latest-on-disk"), Search::Store);
    }

    #[test]
    fn rejects_invalid_selectors() {
        for text in [
            "",
            "1",
            "1.x",
            ">=1.36",
            "1.36.2-rc.1",
            "1.36.2.3",
            "~latest",
            "1.36.-1",
            "!",
            "newest",
        ] {
            let error = text.parse::<Selector>().unwrap_err();
            assert!(error.ends_with(&format!("found `{text}`")), "{error}");
        }
    }
}
