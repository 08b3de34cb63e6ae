//! Numbers of JSON in order: 64-bit integers exactly, everything else as `f64`.

use std::cmp::Ordering;

use serde_json::Number;

/// Compares two numbers by value: `1` and `1.0` are equal.
pub fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => float(left).total_cmp(&float(right)),
    }
}

/// Whether a number is a whole one, however it is written.
pub(crate) fn is_integral(number: &Number) -> bool {
    integer(number).is_some() || float(number).fract() == 0.0
}

fn integer(number: &Number) -> Option<i128> {
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
}

pub(crate) fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order() {
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
