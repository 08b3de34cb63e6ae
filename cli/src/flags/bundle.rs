//! Flags of `bundle`.

use clap::Args;
use rbuilder_products::bundle::version::{is_version, is_version_range};

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

/// Checks the syntax of a range of versions.
fn parse_version_range(text: &str) -> Result<String, String> {
    match is_version_range(text) {
        true => Ok(text.to_owned()),
        false => Err("expected a range such as `>=0.1.0 <0.3.0`".to_owned()),
    }
}

/// Checks the name of a channel, which becomes a part of labels.
fn parse_channel(text: &str) -> Result<String, String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_part) {
        true => Ok(text.to_owned()),
        false => Err("expected letters, digits, `-`, `_` and `.`, such as `stable-0.1`".to_owned()),
    }
}
