//! Formats text like Go, as found in the API server's messages and in the YAML written by
//! Kubernetes tools.

use std::fmt::Write;

/// Quotes a string like Go's `strconv.Quote`.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            character if is_printable(character) => quoted.push(character),
            character => push_escape(character, &mut quoted),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns whether `unicode.IsPrint` accepts a character. (`"` and `\` are handled by the caller.)
fn is_printable(character: char) -> bool {
    // Rust escapes a combining character at the start of a string, although Go prints it, so put
    // another character in front.
    let text = String::from_iter(['a', character]);
    character == '\'' || text.escape_debug().nth(1) == Some(character)
}

fn push_escape(character: char, quoted: &mut String) {
    let code = u32::from(character);
    // Writing to a string can't fail.
    let _ = match code {
        0..0x20 | 0x7f => write!(quoted, "\\x{code:02x}"),
        0..0x10000 => write!(quoted, "\\u{code:04x}"),
        _ => write!(quoted, "\\U{code:08x}"),
    };
}

/// Formats a float like Go's `%g`: with as few digits as possible, and with an exponent below 1e-4
/// and from 1e6 up.
pub fn general(number: f64) -> String {
    with_exponent(number, 6)
}

/// Formats a float like Go's `%v`: the same as [`general`], except that exponents start at 1e21.
pub fn shortest(number: f64) -> String {
    with_exponent(number, 21)
}

/// Formats a float with as few digits as possible. The exponent is only printed if it's below -4 or
/// at least `limit`.
fn with_exponent(number: f64, limit: i32) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number != 0.0 && !(-4..limit).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{number}")
}

/// Formats a float like Go's `%e`, whose exponent always has at least two digits.
pub fn scientific(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_like_go() {
        assert_eq!(
            quote("a\"b\\\n\u{0}\u{7f}é\u{200b}🦀'"),
            r#""a\"b\\\n\x00\x7fé\u200b🦀'""#
        );
        assert_eq!(quote("e\u{301}"), "\"e\u{301}\"");
        assert_eq!(general(1e21), "1e+21");
        assert_eq!(general(1e6), "1e+06");
        assert_eq!(general(123456.5), "123456.5");
        assert_eq!(general(0.00001), "1e-05");
        assert_eq!(general(0.1), "0.1");
        assert_eq!(shortest(1e6), "1000000");
        assert_eq!(shortest(1e21), "1e+21");
        assert_eq!(general(f64::NEG_INFINITY), "-Inf");
        assert_eq!(scientific(12345.0, 2), "1.23e+04");
    }
}
