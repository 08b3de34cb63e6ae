//! Line endings of project files.
//!
//! By default, Git for Windows checks out files with `\r\n` and converts them back on commit. So
//! texts that only differ in their line endings count as the same text: up to date and unchanged.
//! Rewritten files keep their line endings; otherwise git would show every line as changed.
//!
//! Plans, merges and the hashes of scaffolded files all depend on this. Compare file contents with
//! [`is_same_text`] instead of `==`.

use std::borrow::Cow;

/// Whether two texts are equal up to line endings.
pub fn is_same_text(one: &str, other: &str) -> bool {
    one == other || unify(one) == unify(other)
}

/// Converts `\r\n` to `\n` if all lines end with `\r\n`. Mixed line endings are left alone: git
/// never creates them, so the file was edited by hand.
pub fn unify(text: &str) -> Cow<'_, str> {
    match is_windows(text) {
        true => text.replace("\r\n", "\n").into(),
        false => text.into(),
    }
}

/// Converts a text to `\r\n` if all lines in `model` end with `\r\n`.
pub(crate) fn adopt<'a>(text: &'a str, model: &str) -> Cow<'a, str> {
    match is_windows(model) {
        true => text.replace("\r\n", "\n").replace('\n', "\r\n").into(),
        false => text.into(),
    }
}

fn is_windows(text: &str) -> bool {
    // This crate isn't optimized in release builds, so counting line endings is a hundred times as
    // slow as finding a byte with memchr. Most texts have no `\r`.
    if memchr::memchr(b'\r', text.as_bytes()).is_none() {
        return false;
    }
    let windows = text.matches("\r\n").count();
    windows > 0 && windows == text.matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_endings_do_not_matter_for_equality() {
        for (one, other, expected) in [
            ("a\nb\n", "a\r\nb\r\n", true),
            ("a\nb\n", "a\nb\r\n", false),
            ("a\nb\r\n", "a\nb\r\n", true),
            ("a\rb", "a\nb", false),
            ("a\n", "a", false),
            ("a\r", "a", false),
        ] {
            assert_eq!(is_same_text(one, other), expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn adopts_line_endings() {
        for (text, model, expected) in [
            ("a\nb\n", "x\r\n", "a\r\nb\r\n"),
            ("a\r\nb\n", "x\r\ny", "a\r\nb\r\n"),
            ("a\n", "x\r\ny\n", "a\n"),
            ("a\n", "x\n", "a\n"),
            ("a\r\n", "x\n", "a\r\n"),
            ("a\n", "", "a\n"),
        ] {
            assert_eq!(adopt(text, model), expected, "{text:?} {model:?}");
        }
    }
}
