//! Escape sequences for terminal colors.

/// How long the color sequence at the start of a text is, if there is one.
pub fn color_sequence(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\x1b[")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    rest[end..].starts_with('m').then_some(end + 3)
}
