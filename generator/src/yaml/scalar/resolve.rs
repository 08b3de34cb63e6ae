//! What a YAML 1.1 reader takes plain text for.

/// Whether plain `text` would be read as a boolean, a null, a number, a moment or a merge key.
pub(super) fn is_not_a_string(text: &str) -> bool {
    is_word(text)
        || match text.as_bytes()[0] {
            b'.' => is_float(text),
            b'0'..=b'9' | b'+' | b'-' => is_moment(text) || is_number(text) || is_sexagesimal(text),
            _ => false,
        }
}

fn is_word(text: &str) -> bool {
    // Lower case, upper case, or a capital first: `yEs` is text.
    let is_cased_as_words_are = || {
        let rest = text.get(1..).unwrap_or_default().as_bytes();
        rest.iter().all(u8::is_ascii_lowercase) || text.bytes().all(|b| b.is_ascii_uppercase())
    };
    let is_any_of =
        |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word)) && is_cased_as_words_are();
    match text.as_bytes() {
        [] | b"~" | b"<<" | b"=" => true,
        b"y" | b"Y" | b"n" | b"N" => true,
        b".nan" | b".NaN" | b".NAN" => true,
        bytes if bytes.len() > 5 => false,
        [b'.' | b'+' | b'-', ..] => {
            let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
            matches!(unsigned, ".inf" | ".Inf" | ".INF")
        }
        [b'y' | b'Y' | b'n' | b'N' | b'o' | b'O', ..] => is_any_of(&["yes", "no", "on", "off", "null"]),
        [b't' | b'T' | b'f' | b'F', ..] => is_any_of(&["true", "false"]),
        _ => false,
    }
}

fn is_number(text: &str) -> bool {
    let plain: String = text.chars().filter(|&c| c != '_').collect();
    is_prefixed_integer(&plain) || is_float(&plain)
}

/// `0x1F`, `0o17`, `0b1`; bare digits and `017` are floats by their form already.
fn is_prefixed_integer(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let radix = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => 16,
        [b'0', b'o' | b'O', ..] => 8,
        [b'0', b'b' | b'B', ..] => 2,
        _ => return false,
    };
    // A number that no 64 bits hold stays text.
    let digits = &unsigned[2..];
    !digits.starts_with(['+', '-'])
        && match u64::from_str_radix(digits, radix) {
            Ok(value) => match text.as_bytes()[0] {
                b'-' => value <= 1 << 63,
                b'+' => value < 1 << 63,
                _ => true,
            },
            Err(_) => false,
        }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mantissa_is_number = whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit())
        && (!whole.is_empty() || !fraction.is_empty());
    let exponent_is_number =
        exponent.is_none_or(|exponent| is_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)));
    mantissa_is_number && exponent_is_number
}

/// `1:30`, which YAML 1.1 reads as 90.
fn is_sexagesimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let first = parts.next().unwrap_or_default();
    let mut rest: Vec<&str> = parts.collect();
    let Some(last) = rest.pop() else { return false };
    let last = match last.split_once('.') {
        Some((last, fraction)) if fraction.bytes().all(|b| b.is_ascii_digit() || b == b'_') => last,
        _ => last,
    };
    rest.push(last);
    first.starts_with(|c: char| c.is_ascii_digit())
        && first.bytes().all(|b| b.is_ascii_digit() || b == b'_')
        && rest
            .into_iter()
            .all(|part| is_digits(part) && part.len() <= 2 && part.parse().is_ok_and(|n: u8| n < 60))
}

/// A date, or a date and a time, in the forms go-yaml knows.
fn is_moment(text: &str) -> bool {
    let Some(separator) = text.find(['T', 't', ' ']) else {
        return is_date(text);
    };
    let (date, time) = (&text[..separator], &text[separator + 1..]);
    if !is_date(date) {
        return false;
    }
    if text.as_bytes()[separator] == b' ' {
        return is_time(time);
    }
    match time.strip_suffix('Z') {
        Some(time) => is_time(time),
        None => time
            .rfind(['+', '-'])
            .is_some_and(|zone| is_time(&time[..zone]) && is_zone(&time[zone + 1..])),
    }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else {
        return false;
    };
    let (Some(month), Some(day)) = (short_number(month), short_number(day)) else {
        return false;
    };
    if year.len() != 4 || !is_digits(year) {
        return false;
    }
    let year: u32 = year.parse().unwrap_or(0);
    let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_time(text: &str) -> bool {
    let (clock, fraction) = match text.find(['.', ',']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let parts: Vec<Option<u8>> = clock.split(':').map(short_number).collect();
    matches!(parts[..], [Some(0..=23), Some(0..=59), Some(0..=59)]) && fraction.is_none_or(is_digits)
}

fn is_zone(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    matches!(parts[..], [hours, minutes] if hours.len() == 2 && minutes.len() == 2
        && short_number(hours).is_some_and(|h| h <= 24) && short_number(minutes).is_some_and(|m| m < 60))
}

/// One or two digits.
fn short_number(text: &str) -> Option<u8> {
    (is_digits(text) && text.len() <= 2)
        .then(|| text.parse().ok())
        .flatten()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}
