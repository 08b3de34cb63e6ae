//! `date`, `date-time` and `duration`.

use rbuilder_kubernetes::go::parse_duration;

/// An existing date, e.g. `2024-01-31`. The year ranges from 0 to 9999.
pub(super) fn is_date(text: &str) -> bool {
    let &[y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = text.as_bytes() else {
        return false;
    };
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0, |number: u32, digit| {
            Some(number * 10 + char::from(*digit).to_digit(10)?)
        })
    };
    let (Some(year), Some(month), Some(day)) =
        (number(&[y0, y1, y2, y3]), number(&[m0, m1]), number(&[d0, d1]))
    else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// A date and a time with a zone, e.g. `2024-01-31T12:00:00Z`. `T` and `Z` may be lower case.
///
/// This has to be as loose as the API server's regular expression: the dot before the fraction can
/// be any character, an offset can be arbitrarily large, and anything after a second `t` is
/// ignored.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date) && is_time(time)
}

fn is_time(time: &str) -> bool {
    let Some((clock, rest)) = time.split_at_checked(8) else {
        return false;
    };
    let &[h0, h1, b':', m0, m1, b':', s0, s1] = clock.as_bytes() else {
        return false;
    };
    let digits = [h0, h1, m0, m1, s0, s1];
    let is_clock = digits.iter().all(u8::is_ascii_digit) && [h0, h1] <= *b"23" && m0 <= b'5' && s0 <= b'5';
    let without_fraction = || {
        let mut rest = rest.chars();
        let digits = rest.next().filter(|c| *c != '\n').map(|_| rest.as_str())?;
        let zone = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        (zone.len() < digits.len()).then_some(zone)
    };
    is_clock && (is_zone(rest) || without_fraction().is_some_and(is_zone))
}

fn is_zone(zone: &str) -> bool {
    match zone.as_bytes() {
        b"z" => true,
        [b'+' | b'-', h0, h1, b':', m0, m1] => [h0, h1, m0, m1].into_iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// A duration in the format of Go or Scala. For Scala's, a number and a unit anywhere in the string
/// suffice.
pub(super) fn is_duration(text: &str) -> bool {
    parse_duration(text).is_some() || has_scala_duration(text)
}

fn has_scala_duration(text: &str) -> bool {
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = &rest[..rest.len() - after.len()];
        let spaced = after.trim_start_matches([' ', '\t', '\n', '\x0c', '\r']);
        let others = spaced.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ');
        let unit = &spaced[..spaced.len() - others.len()];
        rest = after;
        if unit.is_empty() {
            continue;
        }
        if digits.parse::<i64>().is_err() {
            return false;
        }
        rest = others;
        found |= is_scala_unit(&unit.to_lowercase());
    }
    found
}

fn is_scala_unit(unit: &str) -> bool {
    let words = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    let beginnings = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    words.contains(&unit) || beginnings.iter().any(|beginning| unit.starts_with(beginning))
}
