//! Escapes text in HTML pages.

/// Escapes text for element content or a quoted attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // HTML doesn't allow control characters. The others change the text direction.
            c if c.is_control() && !matches!(c, '\n' | '\t') => escaped.push('\u{fffd}'),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
