//! The API server's format of object names, labels and paths.

/// An RFC 1123 label, e.g. a namespace or a part of a domain.
pub(crate) fn is_label(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| is_lower_or_digit(*byte));
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| is_lower_or_digit(*byte) || *byte == b'-')
}

/// An RFC 1035 label, e.g. the name of a Service. Unlike other labels, it must start with a letter.
pub(crate) fn is_service_name(text: &str) -> bool {
    is_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase())
}

/// An RFC 1123 subdomain, e.g. an API group or the name of most objects.
pub(crate) fn is_subdomain(text: &str) -> bool {
    // Kubernetes only limits the total length, so a part may exceed 63 characters.
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(|byte| is_lower_or_digit(*byte))
            && bytes.last().is_some_and(|byte| is_lower_or_digit(*byte))
            && bytes.iter().all(|byte| is_lower_or_digit(*byte) || *byte == b'-')
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

/// The key of a label is either `name` or `domain/name`.
pub(crate) fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => is_subdomain(domain) && is_word(name),
        None => is_word(text),
    }
}

pub(crate) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_word(text)
}

fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn is_lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
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
        check(is_service_name, &["webhook-service"], &["1a", "Web", "a.b"]);
        check(
            is_subdomain,
            &["a", "a.b-c.1", &long],
            &["", ".", "a..b", "a.B", "a_b"],
        );
        check(
            is_label_key,
            &["app", "a.b/c_D", "x.y"],
            &["", "/a", "a/", "a/b/c", "A.b/c", "-a", &long],
        );
        check(is_label_value, &["", "a", "A_1.b"], &["-", "a b", &long]);
    }
}
