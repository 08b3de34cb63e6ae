//! Timestamps: an instant, plus the UTC offset it was written with.

use rbuilder_kubernetes::time::{date_of, days_before, parse_fraction, parse_rfc3339, parse_without_zone};

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
    let time = if has_zone {
        parse_rfc3339(text)?
    } else {
        parse_without_zone(text)?
    };
    Some(Timestamp {
        seconds: time.seconds,
        nanos: time.nanos,
        offset: time.offset,
    })
}
