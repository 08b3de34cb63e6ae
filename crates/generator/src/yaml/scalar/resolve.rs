//! How YAML 1.1 parsers, both go-yaml and stricter ones, read a plain scalar.

/// Returns true if parsers would read an unquoted `text` as a boolean, null, number, timestamp or
/// merge key.
pub(super) fn is_not_a_string(text: &str) -> bool {
    is_word(text)
        || match text.as_bytes()[0] {
            b'.' => text.as_bytes().get(1).is_some_and(u8::is_ascii_digit) && is_float(text),
            b'0'..=b'9' | b'+' | b'-' => is_moment(text) || is_number(text) || is_sexagesimal(text),
            _ => false,
        }
}

fn is_word(text: &str) -> bool {
    // Words may be in lower case, in upper case or capitalized, so `yEs` is a string.
    let is_cased_as_words_are = || {
        let rest = text.get(1..).unwrap_or_default().as_bytes();
        rest.iter().all(u8::is_ascii_lowercase) || text.bytes().all(|b| b.is_ascii_uppercase())
    };
    let is_any_of =
        |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word)) && is_cased_as_words_are();
    match text.as_bytes() {
        [] | b"~" | b"<<" | b"=" => true,
        b"y" | b"Y" | b"n" | b"N" => true,
        bytes if bytes.len() > 5 => false,
        [b'.' | b'+' | b'-', ..] => {
            let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
            // YAML has no signed `.nan`, but parsers accept it.
            matches!(unsigned, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN")
        }
        [b'y' | b'Y' | b'n' | b'N' | b'o' | b'O', ..] => is_any_of(&["yes", "no", "on", "off", "null"]),
        [b't' | b'T' | b'f' | b'F', ..] => is_any_of(&["true", "false"]),
        _ => false,
    }
}

fn is_number(text: &str) -> bool {
    is_prefixed_integer(text) || is_float(text)
}

/// E.g. `0x1F`, `0o17` or `0b1`. Bare digits and `017` need no check, because they already match as
/// floats.
fn is_prefixed_integer(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let radix = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => 16,
        [b'0', b'o' | b'O', _, ..] => 8,
        [b'0', b'b' | b'B', _, ..] => 2,
        _ => return false,
    };
    unsigned[2..].chars().all(|c| c == '_' || c.is_digit(radix))
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, with `_` anywhere.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    let mantissa_is_number =
        digits().all(|b| b == b'_' || b.is_ascii_digit()) && digits().any(|b| b.is_ascii_digit());
    mantissa_is_number
        && exponent.is_none_or(|exponent| {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            exponent.bytes().all(|b| b == b'_' || b.is_ascii_digit())
                && exponent.bytes().any(|b| b.is_ascii_digit())
        })
}

/// For example, YAML 1.1 reads `1:30` as 90.
fn is_sexagesimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let mut rest = parts.peekable();
    let is_number = |text: &str| text.bytes().all(|b| b == b'_' || b.is_ascii_digit());
    rest.peek().is_some()
        && first.starts_with(|c: char| c.is_ascii_digit())
        && is_number(first)
        && is_number(fraction)
        && rest.all(|part| is_short_number(part) && (part.len() == 1 || part.as_bytes()[0] < b'6'))
}

/// A date, possibly with a time. The day need not exist, because some parsers would reject the
/// whole file in that case.
fn is_moment(text: &str) -> bool {
    let end = text.find(['T', 't', ' ', '\t']).unwrap_or(text.len());
    let (date, rest) = text.split_at(end);
    is_date(date) && (rest.is_empty() || is_time_and_zone(rest))
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut next = || parts.next().unwrap_or_default();
    let (year, month, day) = (next(), next(), next());
    year.len() == 4
        && is_digits(year)
        && is_short_number(month)
        && is_short_number(day)
        && parts.next().is_none()
}

/// Matches a separator (`T` or whitespace), then a time, then an optional time zone.
fn is_time_and_zone(text: &str) -> bool {
    let text = text.trim_start_matches(['T', 't', ' ', '\t']);
    let end = text.find(['Z', '+', '-', ' ', '\t']).unwrap_or(text.len());
    let (time, zone) = text.split_at(end);
    let (clock, fraction) = match time.find(['.', ',']) {
        Some(at) => (&time[..at], &time[at + 1..]),
        None => (time, ""),
    };
    clock.split(':').count() == 3
        && clock.split(':').all(is_short_number)
        && fraction.bytes().all(|b| b.is_ascii_digit())
        && is_zone(zone.trim_start_matches([' ', '\t']))
}

fn is_zone(text: &str) -> bool {
    let Some(offset) = text.strip_prefix(['+', '-']) else {
        return matches!(text, "" | "Z");
    };
    let (hours, minutes) = offset.split_once(':').unwrap_or((offset, "00"));
    is_short_number(hours) && is_short_number(minutes)
}

fn is_short_number(text: &str) -> bool {
    is_digits(text) && text.len() <= 2
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}
