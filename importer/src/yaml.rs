//! YAML to values.

use serde_json::Value;

/// Parses the documents of a stream of YAML.
///
/// The parser is generic over what it reads, and generic code is compiled in the crate that uses it. This crate is optimized
/// in every build of the command, unlike the crate of the command itself.
///
/// # Errors
/// If a document is not YAML, or breaks the limits of the options.
pub fn parse_values(text: &str, options: serde_saphyr::Options) -> Result<Vec<Value>, serde_saphyr::Error> {
    serde_saphyr::from_multiple_with_options(text, options)
}
