//! Durations as 64-bit nanoseconds, like in Go.

use rbuilder_kubernetes::go::parse_duration;

pub(in super::super) const SECOND: i64 = 1_000_000_000;

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
