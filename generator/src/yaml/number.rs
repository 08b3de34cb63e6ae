//! Prints numbers like Go.

use std::fmt::Write as _;

use serde_json::Number;

/// Writes whole numbers as integers (`1.0` becomes `1`) and all others in Go's shortest form. The
/// exponent has at least two digits and is used below 1e-4 and from 1e21 (whole) or 1e6
/// (fractional) on.
pub(super) fn write_number(out: &mut String, number: &Number) {
    match (number.as_u64(), number.as_f64()) {
        (Some(count), _) => write_count(out, count),
        (None, Some(float)) if number.is_f64() => write_float(out, float),
        _ => push(out, format_args!("{number}")),
    }
}

/// Writes a non-negative integer.
pub(super) fn write_count(out: &mut String, count: u64) {
    push(out, format_args!("{count}"));
}

fn write_float(out: &mut String, float: f64) {
    if float.fract() == 0.0 && float.abs() < 9.2e18 {
        return push(out, format_args!("{float:.0}"));
    }
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // Go chooses the format by the number of significant digits: a value whose digits extend past
    // the decimal point is written without an exponent.
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count() as i32;
    let longest = if digits > 21 { 21 } else { 6 };
    if (-4..longest).contains(&exponent) {
        return push(out, format_args!("{float}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    push(out, format_args!("{mantissa}e{sign}{:02}", exponent.abs()));
}

fn push(out: &mut String, number: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = out.write_fmt(number);
}
