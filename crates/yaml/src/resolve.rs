//! The types of plain scalars, as in `go.yaml.in/yaml/v2`, which kubectl uses through
//! `sigs.k8s.io/yaml`: YAML 1.1 with the integers of Go's `strconv`. `0777` is 511, `0x1F` is 31,
//! `1_000` is 1000, and `1e400` is a string, because no 64-bit float is that large.

use std::ops::Range;

use serde_json::{Number, Value};

/// Returns the value of a plain scalar. `None` for infinity and NaN, which JSON doesn't have.
pub(crate) fn resolve(text: &str) -> Option<Value> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => true.into(),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => false.into(),
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        _ if is_not_finite(text) => return None,
        _ => match resolve_number(text) {
            Some(number) => number.into(),
            None => text.into(),
        },
    })
}

/// Returns the JSON name of a plain key. `None` for keys that kubectl rejects: null, and integers of
/// more than 63 bits.
pub(crate) fn resolve_key(text: &str) -> Option<String> {
    match resolve(text) {
        None => Some(match text {
            text if text.ends_with(['n', 'N']) => ".nan".to_owned(),
            text if text.starts_with('-') => "-.inf".to_owned(),
            _ => ".inf".to_owned(),
        }),
        Some(Value::String(text)) => Some(text),
        Some(Value::Bool(value)) => Some(value.to_string()),
        Some(Value::Number(number)) => match number.as_i64() {
            Some(number) => Some(number.to_string()),
            None if number.is_u64() => None,
            None => number.as_f64().map(show_float),
        },
        Some(_) => None,
    }
}

/// A plain scalar on one line, as written.
pub(crate) enum Plain<'a> {
    Untagged(&'a str),
    /// With a tag such as `!x`, which makes the scalar a string.
    Tagged(&'a str),
}

/// Finds a scalar that may be something else than a string. `place` is its place in `source`. Scalars
/// with a tag of YAML itself, such as `!!str`, are left to the parser.
pub(crate) fn find_plain(source: &str, place: Range<usize>) -> Option<Plain<'_>> {
    let text = source.get(place.clone())?;
    // All other plain scalars are strings.
    let begins = |first: u8| first.is_ascii_digit() || b"yYnNtTfFoO~+-.".contains(&first);
    if !begins(*text.as_bytes().first()?) || text.contains('\n') {
        return None;
    }
    let line_start = source[..place.start].rfind('\n').map_or(0, |at| at + 1);
    let before = source[line_start..place.start].trim();
    if before.is_empty() && follows_block_header(&source[..line_start]) {
        return None;
    }
    let is_tag = |word: &&str| word.starts_with('!') && !word.ends_with(',');
    let mut words = before.rsplit(' ').filter(|word| !word.starts_with('&'));
    match words.next().filter(is_tag) {
        None => Some(Plain::Untagged(text)),
        Some(tag) => (!tag.starts_with("!!")).then_some(Plain::Tagged(text)),
    }
}

/// Returns whether the last line with content ends with the header of a block scalar.
fn follows_block_header(above: &str) -> bool {
    let lines = above.lines().rev().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| {
        let line = line.split_once(" #").map_or(line, |(line, _)| line).trim_end();
        let is_indicator = |letter: char| matches!(letter, '+' | '-') || letter.is_ascii_digit();
        line.trim_end_matches(is_indicator).ends_with(['|', '>'])
    })
}

fn is_not_finite(text: &str) -> bool {
    let name = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(name, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

fn resolve_number(text: &str) -> Option<Number> {
    match text.as_bytes().first()? {
        b'.' => parse_float(&without_separators(text)?),
        b'0'..=b'9' | b'+' | b'-' => {
            let digits = text.replace('_', "");
            parse_integer(&digits)
                .or_else(|| parse_float(&digits))
                .or_else(|| parse_binary(&digits))
        }
        _ => None,
    }
}

/// Removes underscores between digits. `None` for other underscores.
fn without_separators(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut separators = text.match_indices('_').map(|(at, _)| at);
    let is_right = separators.all(|at| at > 0 && is_digit(at - 1) && is_digit(at + 1));
    is_right.then(|| text.replace('_', ""))
}

/// Like `strconv.ParseInt` and then `ParseUint`, both with base 0.
fn parse_integer(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let prefix = unsigned.get(..2).filter(|_| unsigned.len() > 2);
    let (radix, digits) = match prefix {
        Some("0x" | "0X") => (16, &unsigned[2..]),
        Some("0o" | "0O") => (8, &unsigned[2..]),
        Some("0b" | "0B") => (2, &unsigned[2..]),
        _ if unsigned.len() > 1 && unsigned.starts_with('0') => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    // Rust's parser accepts a sign here.
    if !digits.bytes().all(|digit| digit.is_ascii_alphanumeric()) {
        return None;
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    match i64::from_str_radix(&format!("{sign}{digits}"), radix) {
        Ok(number) => Some(number.into()),
        Err(_) if unsigned.len() < text.len() => None,
        Err(_) => u64::from_str_radix(digits, radix).ok().map(Number::from),
    }
}

/// Parses `1`, `1.`, `1.5` or `.5`, each with an optional sign and exponent.
fn parse_float(text: &str) -> Option<Number> {
    let is_of_digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_exponent = |exponent: &str| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && is_of_digits(digits)
    };
    let is_float = is_of_digits(whole)
        && is_of_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(is_exponent);
    let number = text.parse::<f64>().ok().filter(|_| is_float)?;
    Number::from_f64(number)
}

/// Parses `0b` followed by a sign, which is left over after `parse_integer`.
fn parse_binary(text: &str) -> Option<Number> {
    let digits = text
        .strip_prefix("0b")
        .filter(|digits| digits.starts_with(['+', '-']))?;
    i64::from_str_radix(digits, 2).ok().map(Number::from)
}

/// Like Go's `strconv.FormatFloat(number, 'g', -1, 32)`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "kubectl shows keys as 32-bit floats"
)]
fn show_float(number: f64) -> String {
    let number = number as f32;
    if number.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        _ => number.to_string(),
    }
}
