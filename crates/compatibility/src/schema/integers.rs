//! The integers that a schema accepts.

use rbuilder_schema::{FORMATS, Schema, SchemaType, Side};
use serde_json::{Number, Value};

/// All multiples of `step` between two integers, both included. `None` stands for no limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Integers {
    least: Option<i64>,
    most: Option<i64>,
    step: i64,
}

impl Integers {
    /// Considers bounds, `multipleOf` and the format. `None` if the values aren't integers, or if
    /// a limit has no exact neighbor.
    pub(super) fn of(schema: &Schema) -> Option<Integers> {
        if schema.schema_type != Some(SchemaType::Integer) || schema.int_or_string {
            return None;
        }
        let (lower, upper) = format_limits(schema.format.as_deref())?;
        let bound = |value: &Option<Number>, side: Side, is_exclusive: bool| match value {
            Some(value) => outermost_integer(value, side, is_exclusive).map(Some),
            None => Some(None),
        };
        let least = bound(&schema.minimum, Side::Lower, schema.exclusive_minimum)?;
        let most = bound(&schema.maximum, Side::Upper, schema.exclusive_maximum)?;
        // Other multiples, such as fractions, are treated as if all integers were multiples of them.
        let step = schema.multiple_of.as_ref().and_then(Number::as_i64);
        let step = step.unwrap_or(1).max(1);
        let up = |integer: i64| Some(integer.checked_add(step - 1)?.div_euclid(step) * step);
        let down = |integer: i64| integer.div_euclid(step).checked_mul(step);
        let least = least.into_iter().chain(lower).max();
        let most = most.into_iter().chain(upper).min();
        Some(Integers {
            least: least.map_or(Some(None), |least| up(least).map(Some))?,
            most: most.map_or(Some(None), |most| down(most).map(Some))?,
            step,
        })
    }

    /// Returns true if the limits of the other schema exclude none of these integers.
    pub(super) fn are_within(&self, other: &Integers) -> bool {
        let least = other
            .least
            .is_none_or(|limit| self.least.is_some_and(|least| least >= limit));
        let most = other
            .most
            .is_none_or(|limit| self.most.is_some_and(|most| most <= limit));
        least && most
    }

    /// Lists the integers, unless there are more than `limit`.
    pub(super) fn list(&self, limit: i64) -> Option<Vec<Value>> {
        let (least, most) = (self.least?, self.most?);
        let is_short = most.checked_sub(least)? / self.step < limit;
        let steps = usize::try_from(self.step).ok()?;
        is_short.then(|| (least..=most).step_by(steps).map(Value::from).collect())
    }
}

/// The limits of a format. `None` if the API server checks the format otherwise.
fn format_limits(format: Option<&str>) -> Option<(Option<i64>, Option<i64>)> {
    match format {
        Some("int32") => Some((Some(i32::MIN.into()), Some(i32::MAX.into()))),
        Some("int64") => Some((Some(i64::MIN), Some(i64::MAX))),
        Some(format) if FORMATS.contains(&format) => None,
        _ => Some((None, None)),
    }
}

/// The integer next to a bound that satisfies it. `None` if it isn't representable.
pub(super) fn outermost_integer(bound: &Number, side: Side, is_exclusive: bool) -> Option<i64> {
    let (whole, is_whole) = match bound.as_i64() {
        Some(whole) => (whole, true),
        None => {
            let float = bound.as_f64()?;
            let whole = match side {
                Side::Lower => float.ceil(),
                Side::Upper => float.floor(),
            };
            // Larger floats have no exact neighbors.
            let is_exact = whole.abs() < 9e15;
            (is_exact.then_some(whole as i64)?, whole == float)
        }
    };
    match (is_exclusive && is_whole, side) {
        (false, _) => Some(whole),
        (true, Side::Lower) => whole.checked_add(1),
        (true, Side::Upper) => whole.checked_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integers(schema: &str) -> Option<Integers> {
        let schema = serde_json::from_str(schema).expect("a schema");
        Integers::of(&Schema {
            schema_type: Some(SchemaType::Integer),
            ..schema
        })
    }

    #[track_caller]
    fn check(schema: &str, least: Option<i64>, most: Option<i64>) {
        let found = integers(schema).expect("integers");
        assert_eq!((found.least, found.most), (least, most), "{schema}");
    }

    #[test]
    fn limits_are_multiples_within_bounds_and_format() {
        check("{}", None, None);
        check(
            r#"{"minimum": 1, "maximum": 11, "multipleOf": 4}"#,
            Some(4),
            Some(8),
        );
        check(
            r#"{"minimum": -11, "maximum": -1, "multipleOf": 4}"#,
            Some(-8),
            Some(-4),
        );
        check(
            r#"{"minimum": 4, "exclusiveMinimum": true, "maximum": 9.5}"#,
            Some(5),
            Some(9),
        );
        check(
            r#"{"format": "int32", "maximum": 3000000000}"#,
            Some(i32::MIN.into()),
            Some(i32::MAX.into()),
        );
        check(r#"{"format": "int64", "minimum": 0}"#, Some(0), Some(i64::MAX));
        check(
            r#"{"format": "wish", "multipleOf": 2.5, "minimum": 1}"#,
            Some(1),
            None,
        );
    }

    #[test]
    fn bounds_without_exact_neighbour_are_not_decided() {
        assert_eq!(integers(r#"{"maximum": 1e17}"#), None);
        assert_eq!(integers(r#"{"format": "float"}"#), None);
    }

    #[test]
    fn few_integers_are_listed() {
        let few = integers(r#"{"minimum": 1, "maximum": 11, "multipleOf": 4}"#).expect("integers");
        assert_eq!(few.list(2), Some(vec![4.into(), 8.into()]));
        assert_eq!(few.list(1), None);
        let all = integers(r#"{"format": "int64"}"#).expect("integers");
        assert_eq!(all.list(1000), None);
        let none = integers(r#"{"minimum": 3, "maximum": 1}"#).expect("integers");
        assert_eq!(none.list(1000), Some(Vec::new()));
    }
}
