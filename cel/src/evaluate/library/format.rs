//! The named formats of Kubernetes, such as `format.dns1123Label()`.

use rbuilder_schema::accepts_format;

use super::url::check_request_uri;

/// A format that validates strings.
#[derive(Debug)]
pub(in super::super) struct NamedFormat {
    /// The name in `format.named`.
    key: &'static str,
    /// The name that distinguishes formats.
    pub(in super::super) name: &'static str,
    /// The length of its regular expression, for the cost.
    pub(in super::super) regex_size: u64,
    validate: fn(&str) -> Vec<String>,
}

const FORMATS: &[NamedFormat] = &[
    NamedFormat {
        key: "dns1123Label",
        name: "DNS1123Label",
        regex_size: 30,
        validate: dns_label,
    },
    NamedFormat {
        key: "dns1123Subdomain",
        name: "DNS1123Subdomain",
        regex_size: 60,
        validate: |text| dns_subdomain(text, CHARACTERS),
    },
    NamedFormat {
        key: "dns1035Label",
        name: "DNS1035Label",
        regex_size: 30,
        validate: dns_1035_label,
    },
    NamedFormat {
        key: "qualifiedName",
        name: "QualifiedName",
        regex_size: 60,
        validate: label_key,
    },
    NamedFormat {
        key: "dns1123LabelPrefix",
        name: "DNS1123LabelPrefix",
        regex_size: 30,
        validate: |text| dns_label(&mask_trailing_dash(text)),
    },
    NamedFormat {
        key: "dns1123SubdomainPrefix",
        name: "DNS1123SubdomainPrefix",
        regex_size: 60,
        validate: |text| dns_subdomain(&mask_trailing_dash(text), CHARACTERS),
    },
    NamedFormat {
        key: "dns1035LabelPrefix",
        name: "DNS1035LabelPrefix",
        regex_size: 30,
        validate: |text| dns_1035_label(&mask_trailing_dash(text)),
    },
    NamedFormat {
        key: "labelValue",
        name: "LabelValue",
        regex_size: 40,
        validate: label_value,
    },
    NamedFormat {
        key: "uri",
        name: "URI",
        regex_size: 1103,
        validate: |text| check_request_uri(text).err().into_iter().collect(),
    },
    NamedFormat {
        key: "uuid",
        name: "uuid",
        regex_size: 70,
        validate: |text| schema_format("uuid", text, "does not match the UUID format"),
    },
    NamedFormat {
        key: "byte",
        name: "byte",
        regex_size: 84,
        validate: |text| schema_format("byte", text, "invalid base64"),
    },
    NamedFormat {
        key: "date",
        name: "date",
        regex_size: 71,
        validate: |text| schema_format("date", text, "invalid date"),
    },
    NamedFormat {
        key: "datetime",
        name: "datetime",
        regex_size: 71,
        validate: |text| schema_format("date-time", text, "invalid datetime"),
    },
];

/// Returns a format by its name in `format.named`.
pub(in super::super) fn named_format(key: &str) -> Option<&'static NamedFormat> {
    FORMATS.iter().find(|format| format.key == key)
}

impl NamedFormat {
    /// Returns why a text does not have the format. Empty if it has.
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

/// Names with a suffix to be appended may end with a dash.
fn mask_trailing_dash(text: &str) -> String {
    match text.strip_suffix('-') {
        // Go cuts two bytes, which are ASCII in names that can be valid.
        Some(_) if text.len() > 1 => {
            let kept = &text.as_bytes()[..text.len() - 2];
            format!("{}a", String::from_utf8_lossy(kept))
        }
        _ => text.to_owned(),
    }
}

const CHARACTERS: &str = "characters";
const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/// Both count bytes, but labels of DNS and keys of labels name them differently.
fn too_long(text: &str, most: usize, unit: &str) -> Option<String> {
    (text.len() > most).then(|| format!("must be no more than {most} {unit}"))
}

fn explain(message: &str, examples: &[&str], pattern: &str) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!(
        "{message} (e.g. {}regex used for validation is '{pattern}')",
        examples.join(" or ")
    )
}

/// Returns whether a text begins with one kind of character, ends with another, and has others or
/// a dash in between.
fn is_word(text: &str, first: fn(u8) -> bool, last: fn(u8) -> bool, middle: fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(start), Some(end)) => first(*start) && last(*end) && bytes.iter().all(|byte| middle(*byte)),
        _ => false,
    }
}

fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    is_word(text, is_lower, is_lower, |byte| is_lower(byte) || byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn dns_label(text: &str) -> Vec<String> {
    let mut errors: Vec<String> = too_long(text, 63, CHARACTERS).into_iter().collect();
    if !is_label(text) {
        errors.push(match is_subdomain(text) {
            true => "must not contain dots".to_owned(),
            false => explain(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                &["my-name", "123-abc"],
                LABEL,
            ),
        });
    }
    errors
}

fn dns_subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut errors: Vec<String> = too_long(text, 253, unit).into_iter().collect();
    if !is_subdomain(text) {
        errors.push(explain(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            &["example.com"],
            &format!("{LABEL}(\\.{LABEL})*"),
        ));
    }
    errors
}

fn dns_1035_label(text: &str) -> Vec<String> {
    let mut errors: Vec<String> = too_long(text, 63, CHARACTERS).into_iter().collect();
    let is_valid = is_word(
        text,
        |byte| byte.is_ascii_lowercase(),
        is_lower,
        |byte| is_lower(byte) || byte == b'-',
    );
    if !is_valid {
        errors.push(explain(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            &["my-name", "abc-123"],
            "[a-z]([-a-z0-9]*[a-z0-9])?",
        ));
    }
    errors
}

const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

fn is_label_key(text: &str) -> bool {
    let is_end = |byte: u8| byte.is_ascii_alphanumeric();
    is_word(text, is_end, is_end, |byte| {
        byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
    })
}

fn label_key(text: &str) -> Vec<String> {
    let explain_name = || {
        explain(
            "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            &["MyName", "my.name", "123-abc"],
            LABEL_KEY,
        )
    };
    let mut errors = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            match prefix.is_empty() {
                true => errors.push("prefix part must be non-empty".to_owned()),
                false => errors.extend(
                    dns_subdomain(prefix, "bytes")
                        .into_iter()
                        .map(|error| format!("prefix part {error}")),
                ),
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                explain_name()
            )];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    }
    errors.extend(too_long(name, 63, "bytes").map(|error| format!("name part {error}")));
    if !is_label_key(name) {
        errors.push(format!("name part {}", explain_name()));
    }
    errors
}

fn label_value(text: &str) -> Vec<String> {
    let mut errors: Vec<String> = too_long(text, 63, "bytes").into_iter().collect();
    if !text.is_empty() && !is_label_key(text) {
        errors.push(explain(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            &["MyValue", "my_value", "12345"],
            &format!("({LABEL_KEY})?"),
        ));
    }
    errors
}
