//! Times in RFC 3339 as Go reads them, and as its `metav1.Time` and `metav1.MicroTime` print them.
//!
//! Where one number is enough, a time is a number of nanoseconds since 1970.

const SECOND: i128 = 1_000_000_000;
const DAY: i64 = 24 * 60 * 60;
/// The start of the year 0, and of the year 10000.
const PRINTABLE: std::ops::Range<i128> = -62_167_219_200 * SECOND..253_402_300_800 * SECOND;

/// The start of the year 1. JSON has null for it, because it is the zero of Go's times.
pub const ZERO: i128 = -62_135_596_800 * SECOND;

/// A time as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// The seconds since 1970.
    pub seconds: i64,
    /// The nanoseconds within the second.
    pub nanos: u32,
    /// The offset of the zone from UTC, in seconds.
    pub offset: i32,
}

/// Prints a time with seconds, e.g. `2026-01-31T12:00:00Z`. Returns `None` if the year does not have
/// four digits.
pub fn print_time(time: i128) -> Option<String> {
    print(time, "")
}

/// Prints a time with microseconds, e.g. `2026-01-31T12:00:00.000000Z`. Returns `None` if the year does
/// not have four digits.
pub fn print_micro_time(time: i128) -> Option<String> {
    print(time, &format!(".{:06}", time.rem_euclid(SECOND) / 1000))
}

fn print(time: i128, fraction: &str) -> Option<String> {
    if !PRINTABLE.contains(&time) {
        return None;
    }
    let seconds = i64::try_from(time.div_euclid(SECOND)).ok()?;
    let (year, month, day) = date_of(seconds.div_euclid(DAY));
    let second = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    Some(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"
    ))
}

/// Parses a time such as `2026-01-31T12:00:00.5+02:00`. Returns nanoseconds since 1970.
pub fn parse_time(text: &str) -> Option<i128> {
    let time = parse_rfc3339(text)?;
    Some(i128::from(time.seconds) * SECOND + i128::from(time.nanos))
}

/// Parses RFC 3339 like Go's `time.Parse`, in which year 0 is valid.
pub fn parse_rfc3339(text: &str) -> Option<Time> {
    let (seconds, rest) = parse_clock(text)?;
    let (nanos, zone) = parse_fraction(rest)?;
    let offset = parse_offset(zone)?;
    Some(Time {
        seconds: seconds - i64::from(offset),
        nanos,
        offset,
    })
}

/// Parses a time such as `2026-01-31T12:00:00.5`, which is taken for UTC.
pub fn parse_without_zone(text: &str) -> Option<Time> {
    let (seconds, rest) = parse_clock(text)?;
    let (nanos, rest) = parse_fraction(rest)?;
    rest.is_empty().then_some(Time {
        seconds,
        nanos,
        offset: 0,
    })
}

/// Parses a date and a time of day. Returns seconds since 1970, and what follows.
fn parse_clock(text: &str) -> Option<(i64, &str)> {
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        let digits = text.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
        digits.parse().ok()
    };
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let fits = |(at, byte): &(usize, u8)| text.as_bytes().get(*at) == Some(byte);
    separators.iter().all(fits).then_some(())?;
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let is_valid = (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    is_valid.then_some(())?;
    let seconds = days_before(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    Some((seconds, text.get(19..)?))
}

fn days_in(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Parses a fraction of a second, if there is one. Returns nanoseconds, and what follows.
pub fn parse_fraction(text: &str) -> Option<(u32, &str)> {
    let Some(digits) = text.strip_prefix(['.', ',']) else {
        return Some((0, text));
    };
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &digits[..digits.len() - rest.len()];
    if digits.is_empty() {
        return None;
    }
    // Ignore digits after the ninth, like Go.
    let digits: String = digits.chars().chain("000000000".chars()).take(9).collect();
    Some((digits.parse().ok()?, rest))
}

/// Parses `Z` or an offset such as `+02:00`, in seconds.
fn parse_offset(zone: &str) -> Option<i32> {
    if zone == "Z" {
        return Some(0);
    }
    let is_form = zone.len() == 6 && zone.is_ascii() && zone.as_bytes()[3] == b':';
    is_form.then_some(())?;
    let number = |text: &str| -> Option<i32> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
        text.parse().ok()
    };
    let (hours, minutes) = (number(&zone[1..3])?, number(&zone[4..6])?);
    // Go accepts hour 24 and minute 60 in offsets.
    let is_valid = hours <= 24 && minutes <= 60;
    is_valid.then_some(())?;
    let seconds = hours * 3600 + minutes * 60;
    match &zone[..1] {
        "+" => Some(seconds),
        "-" => Some(-seconds),
        _ => None,
    }
}

/// Returns the days from 1970 to a date. Years start in March here, so that leap days come last.
pub fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    // 719,468 days from 0000-03-01 to 1970-01-01.
    era * 146_097 + day_of_era - 719_468
}

/// Returns the year, month and day: the inverse of [`days_before`].
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_go() {
        let check = |text: &str, expected: Option<i128>| assert_eq!(parse_time(text), expected, "{text}");
        check("1970-01-01T00:00:00Z", Some(0));
        check(
            "2024-02-29T23:59:59.123456789+02:00",
            Some(1_709_243_999_123_456_789),
        );
        check("0001-01-01T00:00:00Z", Some(ZERO));
        check("2023-02-29T00:00:00Z", None);
        check("2023-02-28T24:00:00Z", None);
        check("2023-02-28T00:00:00", None);
        check("2023-02-28T00:00:00.Z", None);
        check("2023-02-28T00:00:00+1:00", None);
        check("2023-02-28 00:00:00Z", None);
        check("+023-02-28T00:00:00Z", None);
        check("", None);
        for seconds in (-62_000_000_000i64..253_402_300_799).step_by(86_400 * 31 + 7919) {
            let time = i128::from(seconds) * SECOND;
            assert_eq!(parse_time(&print_time(time).unwrap()), Some(time));
            assert_eq!(
                parse_time(&print_micro_time(time - 1000).unwrap()),
                Some(time - 1000)
            );
        }
        assert_eq!(print_time(i128::MAX), None);
        assert_eq!(print_time(253_402_300_800 * SECOND), None);
    }
}
