//! Kubernetes' named formats, e.g. `format.dns1123Label()`.

use rbuilder_kubernetes::names::{
    check_dns_1035_label, check_label, check_label_value, check_qualified_name, check_subdomain,
};
use rbuilder_schema::accepts_format;

use super::url::check_request_uri;

#[derive(Debug)]
pub(in super::super) struct NamedFormat {
    /// Name in `format.named`.
    key: &'static str,
    /// Determines the equality of formats.
    pub(in super::super) name: &'static str,
    /// Length of the regular expression, which determines the cost.
    pub(in super::super) regex_size: u64,
    validate: fn(&str) -> Vec<String>,
}

const fn row(
    key: &'static str,
    name: &'static str,
    regex_size: u64,
    validate: fn(&str) -> Vec<String>,
) -> NamedFormat {
    NamedFormat {
        key,
        name,
        regex_size,
        validate,
    }
}

#[rustfmt::skip] // one row per line
const FORMATS: &[NamedFormat] = &[
    row("dns1123Label", "DNS1123Label", 30, check_label),
    row("dns1123Subdomain", "DNS1123Subdomain", 60, check_subdomain),
    row("dns1035Label", "DNS1035Label", 30, check_dns_1035_label),
    row("qualifiedName", "QualifiedName", 60, check_qualified_name),
    row("dns1123LabelPrefix", "DNS1123LabelPrefix", 30, |text| check_label(&mask_trailing_dash(text))),
    row("dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", 60, |text| check_subdomain(&mask_trailing_dash(text))),
    row("dns1035LabelPrefix", "DNS1035LabelPrefix", 30, |text| check_dns_1035_label(&mask_trailing_dash(text))),
    row("labelValue", "LabelValue", 40, check_label_value),
    row("uri", "URI", 1103, |text| check_request_uri(text).err().into_iter().collect()),
    row("uuid", "uuid", 70, |text| schema_format("uuid", text, "does not match the UUID format")),
    row("byte", "byte", 84, |text| schema_format("byte", text, "invalid base64")),
    row("date", "date", 71, |text| schema_format("date", text, "invalid date")),
    row("datetime", "datetime", 71, |text| schema_format("date-time", text, "invalid datetime")),
];

pub(in super::super) fn named_format(key: &str) -> Option<&'static NamedFormat> {
    FORMATS.iter().find(|format| format.key == key)
}

impl NamedFormat {
    /// Returns the reasons why a string doesn't match the format. Empty if it does.
    pub(in super::super) fn validate(&self, text: &str) -> Vec<String> {
        (self.validate)(text)
    }
}

fn schema_format(format: &str, text: &str, message: &str) -> Vec<String> {
    match accepts_format(format, text) {
        Some(false) => vec![message.to_owned()],
        _ => Vec::new(),
    }
}

/// Masks a trailing dash, which is valid in a prefix because a suffix will follow.
fn mask_trailing_dash(text: &str) -> String {
    match text.strip_suffix('-') {
        // Go cuts off two bytes. In any potentially valid name, these are two ASCII characters.
        Some(_) if text.len() > 1 => {
            let kept = &text.as_bytes()[..text.len() - 2];
            format!("{}a", String::from_utf8_lossy(kept))
        }
        _ => text.to_owned(),
    }
}
