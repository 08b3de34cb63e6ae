//! Validates literals that the API server parses at compile time: formats and timestamps.

/// Returns the first clause (including its `%`) that `string.format` doesn't support.
pub(crate) fn find_unknown_clause(format: &str) -> Option<String> {
    let mut rest = format;
    while let Some((_, after)) = rest.split_once('%') {
        let precision = after
            .strip_prefix('.')
            .map(|digits| digits.trim_start_matches(|c: char| c.is_ascii_digit()));
        let verb = precision.unwrap_or(after);
        let clause = verb.chars().next();
        let is_known = match clause {
            Some('%') => precision.is_none(),
            Some('f' | 'e') => true,
            Some('s' | 'd' | 'b' | 'o' | 'x' | 'X') => true,
            _ => false,
        };
        if !is_known {
            let end = after.len() - verb.len() + clause.map_or(0, char::len_utf8);
            return Some(format!("%{}", &after[..end]));
        }
        rest = &verb[1..];
    }
    None
}

/// Returns true if Go's `time.Parse` accepts a string as RFC 3339. cel-go also rejects year 0.
pub(crate) fn is_timestamp(text: &str) -> bool {
    let number = |range: std::ops::Range<usize>| -> Option<u32> {
        let digits = text.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
        digits.parse().ok()
    };
    let has = |at: usize, byte: u8| text.as_bytes().get(at) == Some(&byte);
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let [
        Some(year),
        Some(month),
        Some(day),
        Some(hour),
        Some(minute),
        Some(second),
    ] = [0..4, 5..7, 8..10, 11..13, 14..16, 17..19].map(number)
    else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    separators.into_iter().all(|(at, byte)| has(at, byte))
        && year > 0
        && (1..=days).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
        && text.get(19..).is_some_and(is_fraction_and_zone)
}

fn is_fraction_and_zone(text: &str) -> bool {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let zone = match text.strip_prefix(['.', ',']) {
        Some(fraction) if fraction.starts_with(is_digit) => fraction.trim_start_matches(is_digit),
        Some(_) => return false,
        None => text,
    };
    let offset = zone
        .strip_prefix(['+', '-'])
        .and_then(|rest| rest.split_once(':'));
    zone == "Z"
        // Go accepts hour 24 and minute 60 in offsets.
        || offset.is_some_and(|(hours, minutes)| {
            let below = |text: &str, limit: u32| {
                text.len() == 2
                    && text.chars().all(is_digit)
                    && text.parse().is_ok_and(|number: u32| number < limit)
            };
            below(hours, 25) && below(minutes, 61)
        })
}

#[cfg(test)]
mod tests {
    use super::{find_unknown_clause, is_timestamp};

    #[test]
    fn finds_unknown_format_clauses() {
        for (format, expected) in [
            ("%s-%d", None),
            ("100%%", None),
            ("%.3f %e", None),
            ("a", None),
            ("%z", Some("%z")),
            ("%s %", Some("%")),
            ("%.2z", Some("%.2z")),
        ] {
            assert_eq!(find_unknown_clause(format).as_deref(), expected, "{format}");
        }
    }

    #[test]
    fn accepts_rfc_3339_timestamps() {
        for (text, expected) in [
            ("2020-01-01T00:00:00Z", true),
            ("2024-02-29T23:59:59.123456789+01:00", true),
            ("0001-01-01T00:00:00-12:30", true),
            ("0000-01-01T00:00:00Z", false),
            ("2023-02-29T00:00:00Z", false),
            ("2020-13-01T00:00:00Z", false),
            ("2020-01-01T24:00:00Z", false),
            ("2020-01-01T00:00:60Z", false),
            ("2020-01-01T00:00:00", false),
            ("2020-01-01 00:00:00Z", false),
            ("2020-01-01T00:00:00.Z", false),
            ("2020-01-01T00:00:00z", false),
            ("2020-01-01T00:00:00+0100", false),
            ("2020-01-01", false),
            ("yesterday", false),
            ("", false),
        ] {
            assert_eq!(is_timestamp(text), expected, "{text}");
        }
    }
}
