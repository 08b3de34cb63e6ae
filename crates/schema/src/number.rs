//! Compares JSON numbers. Only 64-bit integers are exact; anything else is an `f64`.

use std::cmp::Ordering;

use rbuilder_diagnostic::Diagnostic;
use serde_json::Number;

use crate::site::MarkerName;
use crate::{Schema, SchemaType, known};

/// Compares two numbers by value, so that `1` equals `1.0`.
pub fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => as_float(left).total_cmp(&as_float(right)),
    }
}

/// Returns whether a number is an integer, including `1.0`.
pub(crate) fn is_integral(number: &Number) -> bool {
    integer(number).is_some() || as_float(number).fract() == 0.0
}

/// Returns the Rust integer type with this schema, and its limits, or `None` if markers changed the
/// schema.
fn rust_integer(schema: &Schema) -> Option<(&'static str, i128, i128)> {
    const TYPES: &[(&str, i128, i128)] = &[
        ("i8", i8::MIN as i128, i8::MAX as i128),
        ("i16", i16::MIN as i128, i16::MAX as i128),
        ("i32", i32::MIN as i128, i32::MAX as i128),
        ("i64", i64::MIN as i128, i64::MAX as i128),
        ("u8", 0, u8::MAX as i128),
        ("u16", 0, u16::MAX as i128),
        ("u32", 0, u32::MAX as i128),
        ("u64", 0, u64::MAX as i128),
    ];
    if schema.schema_type != Some(SchemaType::Integer) {
        return None;
    }
    let bare = Schema {
        description: None,
        ..schema.clone()
    };
    TYPES
        .iter()
        .copied()
        .find(|(name, ..)| known::integer_type(name).as_ref() == Some(&bare))
}

/// Reports bounds outside of the Rust integer's range. They are either no-ops or let the API server
/// accept values that serde then rejects.
pub(crate) fn check_integer(
    constraints: &Schema,
    schema: &Schema,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) {
    let Schema {
        minimum,
        maximum,
        format,
        ..
    } = constraints;
    if minimum.is_none() && maximum.is_none() && format.is_none() {
        return;
    }
    let bound = |number: &Option<Number>| number.as_ref().and_then(integer);
    if format.is_none() && is_within(bound(minimum), bound(maximum), schema) {
        return;
    }
    let Some((name, least, most)) = rust_integer(schema) else {
        return;
    };
    let help = format!("write a number from {least} to {most}, or change the type of the field");
    if let Some(minimum) = bound(minimum).filter(|minimum| *minimum < least) {
        let message = format!("minimum {minimum} is less than the smallest `{name}`, {least}");
        diagnostics.push(Diagnostic::error(Some("minimum"), message).help(help.clone()));
    }
    if let Some(maximum) = bound(maximum).filter(|maximum| *maximum > most) {
        let message = format!("maximum {maximum} is greater than the largest `{name}`, {most}");
        diagnostics.push(Diagnostic::error(Some("maximum"), message).help(help));
    }
    if name == "i32" && format.as_deref() == Some("int64") {
        let message = "`format = \"int64\"` allows integers that do not fit into `i32`";
        diagnostics
            .push(Diagnostic::error(Some("format"), message).help("change the type of the field to `i64`"));
    }
}

/// Returns whether the bounds are within those of the type. That's nearly always true, and
/// determining the Rust type takes a hundred times as long.
fn is_within(minimum: Option<i128>, maximum: Option<i128>, schema: &Schema) -> bool {
    let (least, most) = match schema.format.as_deref() {
        Some("int32") => (i128::from(i32::MIN), i128::from(i32::MAX)),
        _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
    };
    let own = |number: &Option<Number>| number.as_ref().and_then(integer);
    minimum.is_none_or(|minimum| minimum >= own(&schema.minimum).unwrap_or(least))
        && maximum.is_none_or(|maximum| maximum <= own(&schema.maximum).unwrap_or(most))
}

fn integer(number: &Number) -> Option<i128> {
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
}

pub(crate) fn as_float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_numbers_by_value() {
        let number = |text: &str| text.parse::<Number>().expect("a number");
        for (left, right, expected) in [
            ("1", "2", Ordering::Less),
            ("-1", "18446744073709551615", Ordering::Less),
            ("9223372036854775807", "9223372036854775808", Ordering::Less),
            ("1", "1.0", Ordering::Equal),
            ("0.5", "0", Ordering::Greater),
        ] {
            assert_eq!(
                compare_numbers(&number(left), &number(right)),
                expected,
                "{left} {right}"
            );
        }
    }
}
