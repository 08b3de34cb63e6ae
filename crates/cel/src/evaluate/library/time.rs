//! Timestamps: an instant, plus the UTC offset it was written with.

use super::duration::SECOND;
pub(in super::super) use super::duration::parse_duration_format;

/// 0001-01-01 and 9999-12-31, the limits imposed by CEL.
const MIN_SECONDS: i64 = -62_135_596_800;
const MAX_SECONDS: i64 = 253_402_300_799;

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Timestamp {
    /// Unix time.
    pub(in super::super) seconds: i64,
    /// Nanoseconds within the second.
    pub(in super::super) nanos: u32,
    /// UTC offset in seconds. Only affects formatting.
    offset: i32,
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Timestamp) -> bool {
        (self.seconds, self.nanos) == (other.seconds, other.nanos)
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Timestamp) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Timestamp) -> std::cmp::Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

pub(in super::super) struct Civil {
    pub(in super::super) year: i64,
    pub(in super::super) month: i64,
    pub(in super::super) day: i64,
    /// Zero-based.
    pub(in super::super) day_of_year: i64,
    /// 0 is Sunday.
    pub(in super::super) weekday: i64,
    pub(in super::super) hour: i64,
    pub(in super::super) minute: i64,
    pub(in super::super) second: i64,
}

impl Timestamp {
    pub(in super::super) fn from_seconds(seconds: i64) -> Option<Timestamp> {
        Timestamp {
            seconds,
            nanos: 0,
            offset: 0,
        }
        .checked()
    }

    /// Returns `None` if the timestamp is out of range.
    pub(in super::super) fn checked(self) -> Option<Timestamp> {
        (MIN_SECONDS..=MAX_SECONDS)
            .contains(&self.seconds)
            .then_some(self)
    }

    /// Go's zero time is the first instant of year 1.
    pub(in super::super) fn is_zero(&self) -> bool {
        self.seconds == MIN_SECONDS && self.nanos == 0
    }

    pub(in super::super) fn plus(self, duration: i64) -> Option<Timestamp> {
        let nanos = i64::from(self.nanos) + duration.rem_euclid(SECOND);
        let seconds = self
            .seconds
            .checked_add(duration.div_euclid(SECOND) + nanos / SECOND)?;
        Timestamp {
            seconds,
            nanos: u32::try_from(nanos % SECOND).ok()?,
            offset: self.offset,
        }
        .checked()
    }

    /// Returns `None` if the duration doesn't fit into 64 bits.
    pub(in super::super) fn since(self, other: Timestamp) -> Option<i64> {
        let seconds = self.seconds.checked_sub(other.seconds)?.checked_mul(SECOND)?;
        seconds.checked_add(i64::from(self.nanos) - i64::from(other.nanos))
    }

    pub(in super::super) fn civil(&self, offset: i64) -> Civil {
        let local = self.seconds.saturating_add(offset);
        let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (year, month, day) = date_of(days);
        Civil {
            year,
            month,
            day,
            day_of_year: days - days_before(year, 1, 1),
            // 1970-01-01 was a Thursday.
            weekday: (days + 4).rem_euclid(7),
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }

    /// Formats as RFC 3339, with as many decimals as necessary.
    pub(in super::super) fn format(&self) -> String {
        let civil = self.civil(i64::from(self.offset));
        let mut text = format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            civil.year, civil.month, civil.day, civil.hour, civil.minute, civil.second
        );
        if self.nanos > 0 {
            let digits = format!("{:09}", self.nanos);
            text.push('.');
            text.push_str(digits.trim_end_matches('0'));
        }
        match self.offset {
            0 => text.push('Z'),
            offset => {
                let sign = if offset < 0 { '-' } else { '+' };
                let minutes = offset.abs() / 60;
                text.push_str(&format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60));
            }
        }
        text
    }
}

/// Days from 1970 to a date. Years start in March here, so that leap days come last.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    // 719,468 days from 0000-03-01 to 1970-01-01.
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_before`].
fn date_of(days: i64) -> (i64, i64, i64) {
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

/// Parses RFC 3339 like Go's `time.Parse`, in which year 0 is valid.
pub(in super::super) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    parse(text, true)
}

/// Parses a string with the format `date-time`. The zone is optional, and an empty string means
/// 1970.
pub(in super::super) fn parse_date_time(text: &str) -> Option<Timestamp> {
    if text.is_empty() {
        return Timestamp::from_seconds(0);
    }
    parse(text, true).or_else(|| parse(text, false))
}

/// Go's reason for rejecting a text that has the format `date-time` according to schema validation,
/// such as a time with a small `t` or `z`. `None` for all other texts, and for unusual characters.
pub(in super::super) fn explain_date_time(text: &str) -> Option<String> {
    let is_printable = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    text.bytes().all(is_printable).then_some(())?;
    let (date, time) = text.split_at_checked("2006-01-02".len())?;
    parse_date(date)?;
    if time.starts_with('t') {
        // The last layout that Go tries has no zone.
        return Some(format!(
            "parsing time \"{text}\" as \"2006-01-02T15:04:05\": cannot parse \"{time}\" as \"T\""
        ));
    }
    let (clock, rest) = text.split_at_checked("2006-01-02T15:04:05".len())?;
    parse(clock, false)?;
    let (_, rest) = parse_fraction(rest).unwrap_or((0, rest));
    (!rest.is_empty()).then(|| format!("parsing time \"{text}\": extra text: \"{rest}\""))
}

pub(in super::super) fn parse_date(text: &str) -> Option<Timestamp> {
    if text.len() != 10 {
        return None;
    }
    parse(&format!("{text}T00:00:00"), false)
}

fn parse(text: &str, has_zone: bool) -> Option<Timestamp> {
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
    let (nanos, zone) = parse_fraction(text.get(19..)?)?;
    let offset = match (zone, has_zone) {
        ("Z", true) | ("", false) => 0,
        (zone, true) => parse_offset(zone)?,
        _ => return None,
    };
    let seconds = days_before(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(Timestamp {
        seconds: seconds - i64::from(offset),
        nanos,
        offset,
    })
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

fn parse_fraction(text: &str) -> Option<(u32, &str)> {
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

fn parse_offset(zone: &str) -> Option<i32> {
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
