//! Escape sequences for terminal colors.

/// Returns the length of the color sequence that `text` starts with, if any.
pub fn color_sequence(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\x1b[")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    rest[end..].starts_with('m').then_some(end + 3)
}
