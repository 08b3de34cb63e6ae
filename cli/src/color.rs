//! The escape sequences by which terminals show colors.

/// Returns the length of the sequence that a text begins with, if it is one that sets a color.
pub(crate) fn color_sequence(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\x1b[")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    rest[end..].starts_with('m').then_some(end + 3)
}
