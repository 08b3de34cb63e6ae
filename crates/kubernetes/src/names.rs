//! Validates names like Kubernetes, with the messages of its `validation` package.
//!
//! Each function returns the reasons why a string isn't a valid name; an empty list means that it
//! is.

/// Returns whether a string consists of `edge` characters, and of `others` except at either end.
fn is_made_of(text: &str, edge: fn(u8) -> bool, others: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let is_edge = |byte: Option<&u8>| byte.copied().is_some_and(edge);
    is_edge(bytes.first())
        && is_edge(bytes.last())
        && bytes.iter().all(|byte| edge(*byte) || others.contains(byte))
}

fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_label_shaped(text: &str) -> bool {
    is_made_of(text, is_lower, b"-")
}

fn is_subdomain_shaped(text: &str) -> bool {
    text.split('.').all(is_label_shaped)
}

fn no_more_than(most: usize, unit: &str) -> String {
    // Kubernetes isn't consistent about the unit: some of its packages use characters, others
    // bytes.
    format!("must be no more than {most} {unit}")
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/// Whether a string is a lowercase RFC 1123 subdomain, e.g. an API group or the name of most objects.
/// Only its whole length is limited, not that of its labels.
#[must_use]
pub fn is_subdomain(text: &str) -> bool {
    check_subdomain(text).is_empty()
}

/// Whether a string is a lowercase RFC 1123 label, e.g. the name of a namespace.
#[must_use]
pub fn is_label(text: &str) -> bool {
    check_label(text).is_empty()
}

/// Whether a string is a DNS 1035 label, e.g. the name of a Service. It starts with a letter.
#[must_use]
pub fn is_dns_1035_label(text: &str) -> bool {
    check_dns_1035_label(text).is_empty()
}

/// Whether a string is a qualified name, e.g. the key of a label: `name` or `domain/name`.
#[must_use]
pub fn is_qualified_name(text: &str) -> bool {
    check_qualified_name(text).is_empty()
}

/// Whether a string is the value of a label, which may be empty.
#[must_use]
pub fn is_label_value(text: &str) -> bool {
    check_label_value(text).is_empty()
}

/// Returns the reasons why a string isn't a lowercase RFC 1123 subdomain.
pub fn check_subdomain(text: &str) -> Vec<String> {
    check_subdomain_in(text, "characters")
}

fn check_subdomain_in(text: &str, unit: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > 253 {
        reasons.push(no_more_than(253, unit));
    }
    if !is_subdomain_shaped(text) {
        reasons.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
             and must start and end with an alphanumeric character (e.g. 'example.com', \
             regex used for validation is '{LABEL}(\\.{LABEL})*')"
        ));
    }
    reasons
}

/// Returns the reasons why a string isn't a lowercase RFC 1123 label.
pub fn check_label(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > 63 {
        reasons.push(no_more_than(63, "characters"));
    }
    if is_label_shaped(text) {
        return reasons;
    }
    reasons.push(match is_subdomain_shaped(text) {
        true => "must not contain dots".to_owned(),
        false => format!(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
             and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
             regex used for validation is '{LABEL}')"
        ),
    });
    reasons
}

/// Returns the reasons why a string isn't a DNS 1035 label.
pub fn check_dns_1035_label(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > 63 {
        reasons.push(no_more_than(63, "characters"));
    }
    if !is_label_shaped(text) || text.starts_with(|first: char| first.is_ascii_digit()) {
        reasons.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
             start with an alphabetic character, and end with an alphanumeric character \
             (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    reasons
}

const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// Returns the reasons why a string isn't a qualified name, e.g. a label key.
pub fn check_qualified_name(text: &str) -> Vec<String> {
    let rule = || {
        format!(
            "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
             an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
             regex used for validation is '{QUALIFIED}')"
        )
    };
    let mut reasons = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                reasons.push("prefix part must be non-empty".to_owned());
            } else {
                let prefixed = check_subdomain_in(prefix, "bytes").into_iter();
                reasons.extend(prefixed.map(|reason| format!("prefix part {reason}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                rule()
            )];
        }
    };
    if name.is_empty() {
        reasons.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        reasons.push(format!("name part {}", no_more_than(63, "bytes")));
    }
    if !is_made_of(name, is_alphanumeric, b"-_.") {
        reasons.push(format!("name part {}", rule()));
    }
    reasons
}

/// Returns the reasons why a string isn't a valid label value.
pub fn check_label_value(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > 63 {
        reasons.push(no_more_than(63, "bytes"));
    }
    if !text.is_empty() && !is_made_of(text, is_alphanumeric, b"-_.") {
        reasons.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
             regex used for validation is '({QUALIFIED})?')"
        ));
    }
    reasons
}

/// Returns the reasons why a string isn't a valid path segment in a URL.
pub fn check_path_segment(text: &str) -> Vec<String> {
    if matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    check_path_prefix(text)
}

/// Returns the reasons why a string isn't a valid prefix of a path segment in a URL.
pub fn check_path_prefix(text: &str) -> Vec<String> {
    let illegal = ["/", "%"].into_iter().filter(|illegal| text.contains(illegal));
    illegal
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_kubernetes_formats() {
        let long = "a".repeat(64);
        let check = |is: fn(&str) -> bool, right: &[&str], wrong: &[&str]| {
            right.iter().for_each(|text| assert!(is(text), "{text}"));
            wrong.iter().for_each(|text| assert!(!is(text), "{text}"));
        };
        check(is_label, &["a", "a-1", "1"], &["", "A", "-a", "a-", "a.b", &long]);
        check(
            is_dns_1035_label,
            &["webhook-service"],
            &["1a", "Web", "a.b", &long],
        );
        check(
            is_subdomain,
            &["a", "a.b-c.1", &long],
            &["", ".", "a..b", "a.B", "a_b", &long.repeat(4)],
        );
        check(
            is_qualified_name,
            &["app", "a.b/c_D", "x.y"],
            &["", "/a", "a/", "a/b/c", "A.b/c", "-a", &long],
        );
        check(is_label_value, &["", "a", "A_1.b"], &["-", "a b", &long]);
    }
}
