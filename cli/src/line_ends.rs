//! Line ends of files of a project.
//!
//! Git for Windows checks files out with `\r\n` unless it is told otherwise, and turns them back when they are committed. So
//! a text that differs only in its line ends is the same text: it is up to date, and nobody has changed it. A file that is
//! written again keeps the line ends that it has, or every line of it would differ from the one that was checked out.

use std::borrow::Cow;

/// Returns whether two texts are equal except for their line ends.
pub(crate) fn is_same_text(one: &str, other: &str) -> bool {
    one == other || unify(one) == unify(other)
}

/// Returns a text with `\n` as its line ends if all are `\r\n`. Git makes no text that has both: somebody edited it.
pub(crate) fn unify(text: &str) -> Cow<'_, str> {
    match is_windows(text) {
        true => text.replace("\r\n", "\n").into(),
        false => text.into(),
    }
}

/// Returns a text with `\r\n` as its line ends if all of `model` are.
pub(crate) fn adopt<'a>(text: &'a str, model: &str) -> Cow<'a, str> {
    match is_windows(model) {
        true => text.replace("\r\n", "\n").replace('\n', "\r\n").into(),
        false => text.into(),
    }
}

fn is_windows(text: &str) -> bool {
    let windows = text.matches("\r\n").count();
    windows > 0 && windows == text.matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_same_but_for_their_line_ends() {
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
    fn a_text_gets_the_line_ends_of_another() {
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
