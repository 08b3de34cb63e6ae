//! Flags of `bundle`.

use clap::Args;
use semver::Version;

use super::{ProductFlags, parse_image};

/// Flags of `bundle`.
#[derive(Clone, Debug, Args)]
pub struct BundleFlags {
    /// Version of the operator [default: the version in Cargo.toml, or 0.1.0]
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub version: Option<String>,
    /// Image of the manager [default: the image in config/manager]
    #[arg(long, value_name = "IMAGE", value_parser = parse_image)]
    pub image: Option<String>,
    /// Image of the bundle that the catalog refers to [default: the name in `--image` followed by `-bundle`, with the version
    /// as the tag]
    #[arg(long, value_name = "IMAGE", value_parser = parse_image)]
    pub bundle_image: Option<String>,
    /// Channels of the catalog to add this version to, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "stable", value_name = "NAMES", value_parser = parse_channel)]
    pub channels: Vec<String>,
    /// Default channel of the package [default: the one in the catalog, or the first of `--channels`]
    #[arg(long, value_name = "NAME", value_parser = parse_channel)]
    pub default_channel: Option<String>,
    /// Version that this one replaces [default: the head of each channel, if it is lower]
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub replaces: Option<String>,
    /// Versions that an upgrade to this one skips, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "VERSIONS", value_parser = parse_version)]
    pub skips: Vec<String>,
    /// Range of versions that an upgrade to this one skips, such as `>=0.1.0 <0.3.0`
    #[arg(long, value_name = "RANGE", value_parser = parse_version_range)]
    pub skip_range: Option<String>,
    /// Icon to show in catalogs, an SVG file in the project [default: a hexagon]
    #[arg(long, value_name = "FILE")]
    pub icon: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub product: ProductFlags,
}

/// Checks that a version has the form of semver.
fn parse_version(text: &str) -> Result<String, String> {
    match is_version(text) {
        true => Ok(text.to_owned()),
        false => Err("expected a version such as `1.2.3` or `1.2.3-rc.1`".to_owned()),
    }
}

/// Returns `true` if `text` is a semantic version that names of objects may contain: they allow no
/// `+` and no capitals.
pub(crate) fn is_version(text: &str) -> bool {
    let is_upper = |byte: u8| byte.is_ascii_uppercase();
    Version::parse(text).is_ok_and(|version| version.build.is_empty()) && !text.bytes().any(is_upper)
}

/// Checks the syntax of a range of versions.
fn parse_version_range(text: &str) -> Result<String, String> {
    match is_version_range(text) {
        true => Ok(text.to_owned()),
        false => Err("expected a range such as `>=0.1.0 <0.3.0`".to_owned()),
    }
}

/// Returns `true` if the Operator Lifecycle Manager accepts `text` as a range. A range consists of
/// comparisons with versions or wildcards, all of which must hold, and of alternatives after `||`.
/// Follows the Go package `blang/semver`, version 4. Cargo's ranges, with commas, have a different
/// syntax.
pub(crate) fn is_version_range(text: &str) -> bool {
    text.split("||").all(|alternative| {
        let mut rest = alternative.trim();
        let mut holds = !rest.is_empty();
        while holds && !rest.is_empty() {
            let version = rest.trim_start_matches(['<', '>', '=', '!']);
            let operator = &rest[..rest.len() - version.len()];
            let (version, after) = split_word(version.trim_start());
            holds =
                OPERATORS.contains(&operator) && (Version::parse(version).is_ok() || is_wildcard(version));
            rest = after.trim_start();
        }
        holds
    })
}

const OPERATORS: [&str; 9] = ["", "=", "==", "!", "!=", "<", "<=", ">", ">="];

fn split_word(text: &str) -> (&str, &str) {
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

/// Returns `true` if a version ends in `.x` after one or two numbers, as in `1.x` and `1.2.x`.
fn is_wildcard(version: &str) -> bool {
    let numbers = version.trim_end_matches(".x");
    numbers != version
        && version.split('.').count() <= 3
        && numbers.split('.').all(|part| part.parse::<u64>().is_ok())
}

/// Checks the name of a channel, which becomes a part of labels.
fn parse_channel(text: &str) -> Result<String, String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_part) {
        true => Ok(text.to_owned()),
        false => Err("expected letters, digits, `-`, `_` and `.`, such as `stable-0.1`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_version, is_version_range};

    #[test]
    fn versions_are_those_of_semver() {
        for (text, expected) in [
            ("1.2.3", true),
            ("0.1.0-rc.1", true),
            ("1.2", false),
            ("v1.2.3", false),
            ("01.2.3", false),
            ("1.2.3+x", false),
            ("1.2.3-", false),
            ("", false),
        ] {
            assert_eq!(is_version(text), expected, "{text}");
        }
    }

    #[test]
    fn ranges_are_those_of_the_lifecycle_manager() {
        for (text, expected) in [
            ("<0.3.0", true),
            (">=0.1.0 <0.3.0", true),
            (">= 0.1.0 <0.3.0 || 1.x", true),
            ("0.1.x !0.1.3", true),
            ("1.0.0-rc.1", true),
            ("", false),
            (">=0.1.0,<0.3.0", false),
            (">=0.1", false),
            ("^0.1.0", false),
            ("=>0.1.0", false),
            ("<0.3.0 ||", false),
            ("x", false),
            ("x.x", false),
            ("latest", false),
        ] {
            assert_eq!(is_version_range(text), expected, "{text}");
        }
    }
}
