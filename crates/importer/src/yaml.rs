//! Parses YAML into values.

use serde_json::Value;

/// Parses the documents of a stream of YAML.
///
/// Generic code is compiled in the crate that instantiates it. Every build of the command optimizes
/// this crate, but not the command's own.
///
/// # Errors
/// Returns an error if a document is not YAML or exceeds the limits in `options`.
pub fn parse_values(text: &str, options: serde_saphyr::Options) -> Result<Vec<Value>, serde_saphyr::Error> {
    serde_saphyr::from_multiple_with_options(text, options)
}
