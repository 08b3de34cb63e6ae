//! Flags of `bundle`.

use clap::Args;

use super::ProductFlags;

/// Flags of `bundle`.
#[derive(Clone, Debug, Args)]
pub struct BundleFlags {
    /// Version of the operator [default: that of Cargo.toml, or 0.1.0]
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub version: Option<String>,
    /// Image of the manager [default: that of config/manager]
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Image of the bundle, to which the catalog refers; `<project>-bundle:v<version>` by default
    #[arg(long, value_name = "IMAGE")]
    pub bundle_image: Option<String>,
    /// Channels of the catalog, separated by commas; the first is the default
    #[arg(long, value_delimiter = ',', default_value = "stable", value_name = "NAMES")]
    pub channels: Vec<String>,
    /// Version that this one replaces [default: the last of the default channel in the catalog]
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub replaces: Option<String>,
    /// Versions that an upgrade to this one skips, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "VERSIONS", value_parser = parse_version)]
    pub skips: Vec<String>,
    /// SVG image in the project that catalogs show [default: a hexagon]
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

/// Returns whether a text is a version in the form of semver, without build metadata: names of objects have no `+`.
pub(crate) fn is_version(text: &str) -> bool {
    let (core, pre) = text.split_once('-').unwrap_or((text, "0"));
    let is_number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let is_word = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    core.split('.').count() == 3 && core.split('.').all(is_number) && pre.split('.').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::is_version;

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
}
