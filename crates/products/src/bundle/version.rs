//! Versions and version ranges as parsed by the Operator Lifecycle Manager.

use semver::Version;

/// Whether `text` is a semantic version that can be part of an object name, i.e. without `+` and
/// capitals.
pub fn is_version(text: &str) -> bool {
    let is_upper = |byte: u8| byte.is_ascii_uppercase();
    Version::parse(text).is_ok_and(|version| version.build.is_empty()) && !text.bytes().any(is_upper)
}

/// Whether the Operator Lifecycle Manager accepts `text` as a range.
///
/// A range consists of comparisons with versions or wildcards, all of which must hold, and of
/// alternatives separated by `||`. This is the syntax of the Go package `blang/semver`, version 4.
/// Cargo's syntax differs, e.g. it has commas.
pub fn is_version_range(text: &str) -> bool {
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

/// Whether a version ends in `.x` after one or two numbers, e.g. `1.x` or `1.2.x`.
fn is_wildcard(version: &str) -> bool {
    let numbers = version.trim_end_matches(".x");
    numbers != version
        && version.split('.').count() <= 3
        && numbers.split('.').all(|part| part.parse::<u64>().is_ok())
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
