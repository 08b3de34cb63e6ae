//! Prints numbers like Go.

use std::fmt::Write as _;

use rbuilder_kubernetes::go::general;
use serde_json::Number;

/// Writes whole numbers below 9.2e18 as integers (`1.0` becomes `1`), and all others in Go's
/// shortest form.
pub(super) fn write_number(out: &mut String, number: &Number) {
    match (number.as_u64(), number.as_f64()) {
        (Some(count), _) => write_count(out, count),
        (None, Some(float)) if number.is_f64() => write_float(out, float),
        _ => push(out, format_args!("{number}")),
    }
}

pub(super) fn write_count(out: &mut String, count: u64) {
    push(out, format_args!("{count}"));
}

fn write_float(out: &mut String, float: f64) {
    if float.fract() == 0.0 && float.abs() < 9.2e18 {
        return push(out, format_args!("{float:.0}"));
    }
    out.push_str(&general(float));
}

fn push(out: &mut String, number: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = out.write_fmt(number);
}
