//! Semantic versions, parsed like in `github.com/blang/semver`.

use std::cmp::Ordering;

use rbuilder_kubernetes::go::quote;

/// A version without build metadata, which is irrelevant for comparisons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Semver {
    pub(in super::super) major: u64,
    pub(in super::super) minor: u64,
    pub(in super::super) patch: u64,
    pre: Vec<Part>,
}

/// Order matters: numbers sort before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Semver) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Semver {
    fn cmp(&self, other: &Semver) -> Ordering {
        let numbers = |version: &Semver| (version.major, version.minor, version.patch);
        // A release sorts after its prereleases.
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| self.pre.is_empty().cmp(&other.pre.is_empty()))
            .then_with(|| self.pre.cmp(&other.pre))
    }
}

/// Parses a version, with the API server's error messages.
pub(in super::super) fn parse_semver(text: &str) -> Result<Semver, String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    let major = number("major", "Major", major)?;
    let minor = number("minor", "Minor", minor)?;
    let (rest, build) = match rest.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (rest, None),
    };
    let (patch, pre) = match rest.split_once('-') {
        Some((patch, pre)) => (patch, Some(pre)),
        None => (rest, None),
    };
    let patch = number("patch", "Patch", patch)?;
    let pre = pre
        .into_iter()
        .flat_map(|pre| pre.split('.'))
        .map(prerelease_part)
        .collect::<Result<_, _>>()?;
    // Build metadata is dropped but must be valid.
    for part in build.into_iter().flat_map(|build| build.split('.')) {
        if part.is_empty() {
            return Err("Build meta data is empty".to_owned());
        }
        if !part.chars().all(is_word) {
            return Err(format!(
                "Invalid character(s) found in build meta data {}",
                quote(part)
            ));
        }
    }
    Ok(Semver {
        major,
        minor,
        patch,
        pre,
    })
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-'
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(lower: &str, upper: &str, text: &str) -> Result<u64, String> {
    if !is_number(text) {
        return Err(format!(
            "Invalid character(s) found in {lower} number {}",
            quote(text)
        ));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!(
            "{upper} number must not contain leading zeroes {}",
            quote(text)
        ));
    }
    parse_uint(text)
}

fn parse_uint(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        let reason = if text.is_empty() {
            "invalid syntax"
        } else {
            "value out of range"
        };
        format!("strconv.ParseUint: parsing {}: {reason}", quote(text))
    })
}

fn prerelease_part(text: &str) -> Result<Part, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if is_number(text) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {}",
                quote(text)
            ));
        }
        return parse_uint(text).map(Part::Number);
    }
    match text.chars().all(is_word) {
        true => Ok(Part::Word(text.to_owned())),
        false => Err(format!(
            "Invalid character(s) found in prerelease {}",
            quote(text)
        )),
    }
}

/// Like `parse_semver`, but tolerates a leading `v`, leading zeros, and missing minor and patch
/// versions.
pub(in super::super) fn parse_loose_semver(text: &str) -> Result<Semver, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
    }
    parse_semver(&parts.join("."))
}

fn without_zeros(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let trimmed = part.trim_start_matches('0');
    match trimmed.starts_with(|first: char| first.is_ascii_digit()) {
        true => trimmed.to_owned(),
        false => format!("0{trimmed}"),
    }
}
