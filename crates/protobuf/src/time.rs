//! Times in RFC 3339, as Go's `metav1.Time` and `metav1.MicroTime` print and read them.

use serde_json::Value;

const DAY: i64 = 24 * 60 * 60;
/// The start of the year 1, which is the zero of Go's times.
const ZERO: i64 = -62_135_596_800;
/// The start of the year 0, and the last second of 9999.
const PRINTABLE: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

/// Prints a time in UTC, with microseconds if there are `nanos`. The zero of Go is null. Returns
/// `None` if the year does not have four digits.
pub(crate) fn print_time(seconds: i64, nanos: Option<i64>) -> Option<Value> {
    // Go drops what is below a microsecond, and accepts any number of nanoseconds.
    let micros = nanos.unwrap_or(0) / 1000;
    let seconds = seconds.checked_add(micros.div_euclid(1_000_000))?;
    let micros = micros.rem_euclid(1_000_000);
    if !PRINTABLE.contains(&seconds) {
        return None;
    }
    if seconds == ZERO && micros == 0 {
        return Some(Value::Null);
    }
    let (year, month, day) = date_of(seconds.div_euclid(DAY));
    let second = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = match nanos {
        Some(_) => format!(".{micros:06}"),
        None => String::new(),
    };
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z").into())
}

/// Returns the seconds and nanoseconds since 1970.
pub(crate) fn parse_time(text: &str) -> Option<(i64, i64)> {
    let number = |range: std::ops::Range<usize>| {
        let digits = text.get(range)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse::<i64>().ok()).flatten()
    };
    let signs: Vec<u8> = [4, 7, 10, 13, 16]
        .iter()
        .filter_map(|at| text.as_bytes().get(*at).copied())
        .collect();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let days = days_before(year, month) + day - 1;
    let is_date = (1..=12).contains(&month) && day >= 1 && date_of(days) == (year, month, day);
    if signs != *b"--T::" || !is_date || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let rest = text.get(19..)?;
    let (nanos, zone) = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|sign: char| sign.is_ascii_digit());
            let digits = &fraction[..fraction.len() - zone.len()];
            let digits = digits.get(..9).unwrap_or(digits);
            (
                format!("{digits:0<9}")
                    .parse()
                    .ok()
                    .filter(|_| !digits.is_empty())?,
                zone,
            )
        }
        None => (0, rest),
    };
    let time = days * DAY + hour * 3600 + minute * 60 + second;
    Some((time - parse_offset(zone)?, nanos))
}

/// Parses `Z` or an offset such as `+02:00`, in seconds.
fn parse_offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let sign: i64 = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone.strip_prefix(['+', '-'])?.split_once(':')?;
    let number = |digits: &str, limit: i64| {
        let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number
            .then(|| digits.parse::<i64>().ok())
            .flatten()
            .filter(|number| *number < limit)
    };
    Some(sign * (number(hours, 24)? * 3600 + number(minutes, 60)? * 60))
}

/// Returns the days from 1970 to the first day of a month.
fn days_before(year: i64, month: i64) -> i64 {
    // Years begin in March, so that the leap day is the last one.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (month * 153 + 2) / 5 - 719_468
}

/// Returns the year, month and day of a number of days since 1970.
fn date_of(days: i64) -> (i64, i64, i64) {
    const CYCLE: i64 = 400 * 365 + 97;
    let (cycle, day) = (
        (days + 719_468).div_euclid(CYCLE),
        (days + 719_468).rem_euclid(CYCLE),
    );
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = cycle * 400 + year;
    if month < 10 {
        (year, month + 3, day)
    } else {
        (year + 1, month - 9, day)
    }
}
