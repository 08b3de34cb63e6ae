//! Values of literals.

use std::borrow::Cow;

/// Returns the value of `"…"`, `r"…"` or `r#"…"#`. `None` if it contains an unknown escape.
///
/// Line breaks are normalized to `\n`, regardless of the file's line endings.
pub fn text_value(literal: &str) -> Option<Cow<'_, str>> {
    if let Some(raw) = literal.strip_prefix('r') {
        let inner = raw.trim_matches('#').strip_prefix('"')?.strip_suffix('"')?;
        return Some(with_plain_lines(inner));
    }
    // Suffixed literals are only valid as macro input and have no value.
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(with_plain_lines(inner));
    }
    let mut value = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        push_plain_lines(&rest[..at], &mut value);
        let (escape, behind) = rest[at + 1..].split_at_checked(1)?;
        rest = match escape {
            // A `\` at the end of a line also skips the indentation of the next line.
            "\n" | "\r" => behind.trim_start_matches([' ', '\t', '\n', '\r']),
            _ => {
                let (letter, behind) = unescape(escape.as_bytes()[0], behind)?;
                value.push(letter);
                behind
            }
        };
    }
    push_plain_lines(rest, &mut value);
    Some(Cow::Owned(value))
}

pub(crate) fn char_value(literal: &str) -> Option<char> {
    let inner = literal.strip_prefix('\'')?.strip_suffix('\'')?;
    match inner.strip_prefix('\\') {
        None => inner.chars().next(),
        Some(escape) => {
            let (escape, rest) = escape.split_at_checked(1)?;
            unescape(escape.as_bytes()[0], rest).map(|(letter, _)| letter)
        }
    }
}

/// Parses an integer, e.g. `0xFF_u8` as 255. `None` on overflow.
pub(crate) fn integer_value(literal: &str) -> Option<u128> {
    let (digits, radix) = match literal.as_bytes() {
        [b'0', b'x', ..] => (&literal[2..], 16),
        [b'0', b'o', ..] => (&literal[2..], 8),
        [b'0', b'b', ..] => (&literal[2..], 2),
        _ => (literal, 10),
    };
    let mut value: u128 = 0;
    for letter in digits.chars().filter(|letter| *letter != '_') {
        let Some(digit) = letter.to_digit(radix) else {
            // Start of the suffix, which never begins with a hexadecimal digit.
            break;
        };
        value = value
            .checked_mul(u128::from(radix))?
            .checked_add(u128::from(digit))?;
    }
    Some(value)
}

/// `None` if the value isn't finite.
pub(crate) fn float_value(literal: &str, sign: &str) -> Option<f64> {
    let number = literal
        .strip_suffix("f32")
        .or_else(|| literal.strip_suffix("f64"))
        .unwrap_or(literal);
    let text: String = sign
        .chars()
        .chain(number.chars().filter(|letter| *letter != '_'))
        .collect();
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns the character and the text after the escape sequence.
fn unescape(escape: u8, rest: &str) -> Option<(char, &str)> {
    let letter = match escape {
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'0' => '\0',
        b'\\' | b'\'' | b'"' => char::from(escape),
        b'x' => {
            let (digits, behind) = rest.split_at_checked(2)?;
            let code = u8::from_str_radix(digits, 16).ok()?;
            return Some((char::from(code), behind));
        }
        b'u' => {
            let (digits, behind) = rest.strip_prefix('{')?.split_once('}')?;
            let code = u32::from_str_radix(&digits.replace('_', ""), 16).ok()?;
            return Some((char::from_u32(code)?, behind));
        }
        _ => return None,
    };
    Some((letter, rest))
}

pub(crate) fn with_plain_lines(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

fn push_plain_lines(text: &str, to: &mut String) {
    to.push_str(&with_plain_lines(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(literal: &str, expected: Option<&str>) {
        assert_eq!(text_value(literal).as_deref(), expected, "{literal}");
    }

    #[test]
    fn reads_strings() {
        check_text(r#""""#, Some(""));
        check_text(r#""plain""#, Some("plain"));
        check_text(r#""a\n\t\r\0\\\'\"b""#, Some("a\n\t\r\0\\'\"b"));
        check_text(r#""\x41\u{1F_600}é""#, Some("A😀é"));
        check_text("\"one \\\n   two\"", Some("one two"));
        check_text("\"one \\\r\n   two\"", Some("one two"));
        check_text("\"one\r\ntwo\"", Some("one\ntwo"));
        check_text(r#"r"\d""#, Some(r"\d"));
        check_text(r###"r##"a"#b"##"###, Some("a\"#b"));
        check_text(r#""\q""#, None);
        check_text(r#""\u{110000}""#, None);
        check_text(r#""x"suffix"#, None);
    }

    #[test]
    fn reads_characters() {
        for (literal, expected) in [
            ("'a'", Some('a')),
            ("'é'", Some('é')),
            (r"'\''", Some('\'')),
            (r"'\u{41}'", Some('A')),
            (r"'\x7f'", Some('\u{7f}')),
        ] {
            assert_eq!(char_value(literal), expected, "{literal}");
        }
    }

    #[test]
    fn reads_numbers() {
        for (literal, expected) in [
            ("0", Some(0)),
            ("1_000u32", Some(1000)),
            ("0xFF_u8", Some(255)),
            ("0o17", Some(15)),
            ("0b1_01i8", Some(5)),
            ("12usize", Some(12)),
            ("340282366920938463463374607431768211456", None),
        ] {
            assert_eq!(integer_value(literal), expected, "{literal}");
        }
        for (literal, sign, expected) in [
            ("1.5", "", Some(1.5)),
            ("1_0.5e-1f64", "-", Some(-1.05)),
            ("1f32", "", Some(1.0)),
            ("2.", "", Some(2.0)),
            ("1e999", "", None),
        ] {
            assert_eq!(float_value(literal, sign), expected, "{literal}");
        }
    }
}
