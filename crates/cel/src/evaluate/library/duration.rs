//! Durations as 64-bit nanoseconds, like in Go.

pub(in super::super) const SECOND: i64 = 1_000_000_000;

/// Parses a duration like Go's `time.ParseDuration`, e.g. `-1h30m` or `1.5s`.
pub(in super::super) fn parse_duration(text: &str) -> Option<i64> {
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

/// Parses a string with the format `duration`: either a Go duration or words such as
/// `2 hours 3 days`.
pub(in super::super) fn parse_duration_format(text: &str) -> Option<i64> {
    parse_duration(text).or_else(|| parse_words(text))
}

fn parse_words(text: &str) -> Option<i64> {
    let mut total: Option<i64> = None;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let after = rest[start..].trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = &rest[start..rest.len() - after.len()];
        let spaced = after.trim_start_matches([' ', '\t', '\n', '\x0c', '\r']);
        let others = spaced.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ');
        let unit = spaced[..spaced.len() - others.len()].to_lowercase();
        rest = after;
        if unit.is_empty() {
            continue;
        }
        let factor: i64 = digits.parse().ok()?;
        for unit in word_units(&unit) {
            total = Some(total.unwrap_or(0).wrapping_add(factor.wrapping_mul(unit)));
        }
        rest = others;
    }
    total
}

/// Returns the units matched by a word. There may be several, because the API server adds the
/// duration once per matching spelling.
fn word_units(unit: &str) -> impl Iterator<Item = i64> + '_ {
    const HOUR: i64 = 3600 * SECOND;
    const UNITS: &[(&[&str], &str, i64)] = &[
        (&["ns"], "nano", 1),
        (&["us", "µs"], "micro", 1_000),
        (&["ms"], "milli", 1_000_000),
        (&["s"], "sec", SECOND),
        (&["m"], "min", 60 * SECOND),
        (&["h", "hr"], "hour", HOUR),
        (&["d"], "day", 24 * HOUR),
        (&["w", "wk"], "week", 7 * 24 * HOUR),
    ];
    UNITS.iter().filter_map(move |(words, beginning, value)| {
        (words.contains(&unit) || unit.starts_with(beginning)).then_some(*value)
    })
}

/// Formats a duration like CEL: in seconds, with as many decimals as necessary.
#[allow(clippy::cast_precision_loss)]
pub(in super::super) fn format_duration(duration: i64) -> String {
    // Like Go, add whole seconds and the rest as floats, as this affects rounding.
    let seconds = (duration / SECOND) as f64 + (duration % SECOND) as f64 / 1e9;
    format!("{seconds}s")
}

/// Rounds toward zero. Goes through floats, like Go.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
pub(in super::super) fn in_unit(duration: i64, unit: i64) -> i64 {
    let scale = unit as f64;
    ((duration / unit) as f64 + (duration % unit) as f64 / scale) as i64
}
