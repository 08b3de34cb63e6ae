//! Helpers for text in log messages.

use std::any::Any;

/// Replaces line breaks with spaces, because log collectors treat each line as a separate message.
pub(crate) fn join_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// The payload of a panic is either a `&str` or a `String`.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multi_line_text_is_joined() {
        let cases = [
            ("not now", "not now"),
            ("", ""),
            (
                "assertion `left == right` failed: size\n  left: 1\r\n right: 2\n\n",
                "assertion `left == right` failed: size left: 1 right: 2",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(join_lines(text), expected);
        }
    }
}
