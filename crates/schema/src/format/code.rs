//! Codes of digits and letters: `uuid`, `isbn`, `creditcard`, `ssn`, `hexcolor`, `rgbcolor`,
//! `byte`, `bsonobjectid`.

pub(super) fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|c| c.is_ascii_hexdigit())
}

pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    !digits.is_empty()
        && padding <= 2
        && text.len().is_multiple_of(4)
        && digits
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || c == b'+' || c == b'/')
}

/// Three or six hexadecimal digits, with or without a `#`.
pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    is_hex(digits, 3) || is_hex(digits, 6)
}

/// Go's `\s`, which is narrower than `char::is_whitespace`.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0c' | '\r')
}

/// E.g. `rgb(255, 204, 0)`.
pub(super) fn is_rgb_color(text: &str) -> bool {
    let inner = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
    let is_part = |part: &str| {
        let part = part.trim_matches(is_space);
        let is_number = !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
        is_number && (part == "0" || !part.starts_with('0')) && part.parse::<u8>().is_ok()
    };
    inner.is_some_and(|inner| inner.split(',').count() == 3 && inner.split(',').all(is_part))
}

/// 8, 4, 4, 4 and 12 hexadecimal digits, with or without dashes in between. The third group must
/// start with the version, if any. Versions 4 and 5 also restrict the first digit of the fourth
/// group.
pub(super) fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut rest = text.as_bytes();
    for (group, digits) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 && rest.first() == Some(&b'-') {
            rest = &rest[1..];
        }
        let Some((these, others)) = rest.split_at_checked(digits) else {
            return false;
        };
        let is_variant = || matches!(these[0].to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b');
        let is_fitting = match (group, version) {
            (2, Some(version)) => these[0] == version,
            (3, Some(b'4' | b'5')) => is_variant(),
            _ => true,
        };
        if !is_fitting || !these.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        rest = others;
    }
    rest.is_empty()
}

/// Strips spaces and dashes, returning the digits or `None` if there is anything else. The last
/// digit of an ISBN-10 may be `X` for 10.
fn isbn_digits(text: &str, length: usize) -> Option<Vec<u32>> {
    let sanitized: Vec<char> = text.chars().filter(|c| !is_space(*c) && *c != '-').collect();
    if sanitized.len() != length {
        return None;
    }
    let digit = |(position, c): (usize, &char)| match c {
        'X' if length == 10 && position == 9 => Some(10),
        c => c.to_digit(10),
    };
    sanitized.iter().enumerate().map(digit).collect()
}

pub(super) fn is_isbn10(text: &str) -> bool {
    isbn_digits(text, 10).is_some_and(|digits| {
        let sum: u32 = (1..).zip(&digits).map(|(factor, digit)| factor * digit).sum();
        sum.is_multiple_of(11)
    })
}

pub(super) fn is_isbn13(text: &str) -> bool {
    isbn_digits(text, 13).is_some_and(|digits| {
        let weighted = digits.iter().zip([1, 3].into_iter().cycle());
        weighted
            .map(|(digit, factor)| digit * factor)
            .sum::<u32>()
            .is_multiple_of(10)
    })
}

/// A number of a known network with a valid Luhn check digit. Characters between the digits are
/// ignored.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let begins = |from: u32, to: u32| {
        let length = from.ilog10() as usize + 1;
        let prefix = digits.get(..length).and_then(|prefix| prefix.parse::<u32>().ok());
        prefix.is_some_and(|prefix| (from..=to).contains(&prefix))
    };
    let is_known = match digits.len() {
        13 => begins(4, 4),
        14 => begins(300, 305) || begins(36, 36) || begins(38, 38),
        15 => begins(34, 34) || begins(37, 37) || begins(2131, 2131) || begins(1800, 1800),
        16 => begins(4, 4) || begins(51, 55) || begins(6011, 6011) || begins(6500, 6599) || begins(35, 35),
        _ => false,
    };
    let luhn = || {
        let doubled = |(position, digit): (usize, u32)| match position % 2 {
            0 => digit,
            _ => digit * 2 / 10 + digit * 2 % 10,
        };
        let reversed = digits.chars().rev().filter_map(|c| c.to_digit(10));
        reversed.enumerate().map(doubled).sum::<u32>().is_multiple_of(10)
    };
    is_known && luhn()
}

/// `123-45-6789` or `123 45 6789`. The separators are mandatory.
pub(super) fn is_ssn(text: &str) -> bool {
    text.len() == 11
        && text.bytes().enumerate().all(|(position, c)| match position {
            3 | 6 => matches!(c, b'-' | b' '),
            _ => c.is_ascii_digit(),
        })
}
