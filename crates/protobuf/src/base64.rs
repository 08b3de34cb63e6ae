//! Bytes in JSON, as Go reads and prints them.

use ::base64::Engine as _;
use ::base64::alphabet::STANDARD;
use ::base64::engine::general_purpose::{GeneralPurpose, PAD};

/// Go ignores the unused bits of the last sign.
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, PAD.with_decode_allow_trailing_bits(true));

pub(crate) fn print_base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Returns `None` if the text has another alphabet, or is incomplete. Line breaks are skipped, like in
/// Go.
pub(crate) fn parse_base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text.replace(['\r', '\n'], "")).ok()
}
