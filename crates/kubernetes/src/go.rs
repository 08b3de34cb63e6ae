//! Go's formats: text as in the API server's messages and in the YAML written by Kubernetes tools, and
//! durations.

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

/// Parses a duration like `time.ParseDuration`, e.g. `-1h30m` or `1.5s`. Returns nanoseconds.
#[must_use]
pub fn parse_duration(text: &str) -> Option<i64> {
    let is_negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (value, after) = parse_part(rest)?;
        // 2^63 is only valid with a minus sign.
        total = total.checked_add(value).filter(|total| *total <= 1 << 63)?;
        rest = after;
    }
    match (is_negative, i64::try_from(total)) {
        (false, total) => total.ok(),
        (true, Ok(total)) => Some(-total),
        (true, Err(_)) => Some(i64::MIN),
    }
}

fn parse_part(text: &str) -> Option<(u64, &str)> {
    let unit_at = text
        .find(|c: char| c != '.' && !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, after) = text.split_at(unit_at);
    let unit_ends = after
        .find(|c: char| c == '.' || c.is_ascii_digit())
        .unwrap_or(after.len());
    let (unit, rest) = after.split_at(unit_ends);
    let factor = nanoseconds(unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = number != "." && !number.is_empty() && !fraction.contains('.');
    let whole: u64 = match whole {
        "" => 0,
        whole => whole.parse().ok()?,
    };
    let value = whole.checked_mul(factor)?;
    is_number.then_some(())?;
    Some((value.checked_add(fraction_of(fraction, factor))?, rest))
}

/// Ignores digits that don't fit into 63 bits, like Go.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0_u64, 1.0_f64);
    for digit in digits.bytes().map(|digit| u64::from(digit - b'0')) {
        let Some(next) = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(digit))
            .filter(|value| *value <= i64::MAX as u64)
        else {
            break;
        };
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

fn nanoseconds(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
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

    #[test]
    fn durations_are_read_as_in_go() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("1m30s", Some(90_000_000_000)),
            ("-1.5s", Some(-1_500_000_000)),
            (".5us", Some(500)),
            ("3µs2ns", Some(3_002)),
            ("-9223372036854775808ns", Some(i64::MIN)),
            ("9223372036854775808ns", None),
            ("99999999999999999999h", None),
            ("--5s", None),
            ("+-5s", None),
            ("", None),
            ("-", None),
            ("5", None),
            ("s", None),
            (".s", None),
            ("1..s", None),
            ("1d", None),
            ("1s ", None),
        ] {
            assert_eq!(parse_duration(text), expected, "{text}");
        }
    }
}
