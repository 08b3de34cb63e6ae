//! Checks numbers with the API server's arithmetic.

use std::cmp::Ordering;

use serde_json::Number;

use crate::number::as_float;
use crate::{Schema, SchemaType, compare_numbers};

/// The largest integer up to which every JSON parser is exact. The API server doesn't treat larger
/// floats as integers.
const MAX_WHOLE_FLOAT: f64 = 9_007_199_254_740_991.0;

pub(crate) fn is_whole(number: &Number) -> bool {
    number.is_i64() || (as_float(number).fract() == 0.0 && as_float(number).abs() <= MAX_WHOLE_FLOAT)
}

/// Returns whether the API server can represent a bound. Otherwise it rejects every value.
pub(crate) fn is_in_format(bound: &Number, schema: &Schema) -> bool {
    if schema.schema_type != Some(SchemaType::Integer) {
        let is_float =
            schema.schema_type == Some(SchemaType::Number) && schema.format.as_deref() == Some("float");
        return !is_float || as_float(bound).abs() <= f64::from(f32::MAX);
    }
    // `f64` is exact up to here, so the conversion doesn't change the number.
    if let Some(bound) = bound
        .as_i64()
        .filter(|bound| (bound.unsigned_abs() as f64) <= MAX_WHOLE_FLOAT)
    {
        return schema.format.as_deref() != Some("int32") || i32::try_from(bound).is_ok();
    }
    // The API server formats the bound as the shortest decimal of a 64-bit float and parses that
    // again as an integer of the format. For `i64::MAX`, this yields 9223372036854776000, which
    // doesn't fit.
    let written = as_float(bound).to_string();
    match schema.format.as_deref() {
        Some("int32") => written.parse::<i32>().is_ok(),
        _ => written.parse::<i64>().is_ok(),
    }
}

pub(super) fn check_number(number: &Number, schema: &Schema) -> Result<(), String> {
    check_format(number, schema)?;
    for bound in [&schema.minimum, &schema.maximum, &schema.multiple_of]
        .into_iter()
        .flatten()
    {
        if !is_in_format(bound, schema) {
            return Err(format!(
                "the API server cannot evaluate the bound {bound} and rejects every value"
            ));
        }
    }
    let is_beyond = |bound: &Number, exclusive: bool, beyond: Ordering| {
        let order = compare_numbers(number, &comparable(number, bound));
        order == beyond || (exclusive && order.is_eq())
    };
    if let Some(bound) = &schema.minimum
        && is_beyond(bound, schema.exclusive_minimum, Ordering::Less)
    {
        return Err(format!("{number} is less than the minimum {bound}"));
    }
    if let Some(bound) = &schema.maximum
        && is_beyond(bound, schema.exclusive_maximum, Ordering::Greater)
    {
        return Err(format!("{number} is greater than the maximum {bound}"));
    }
    match &schema.multiple_of {
        Some(factor) if !is_multiple(number, factor) => {
            Err(format!("{number} is not a multiple of {factor}"))
        }
        _ => Ok(()),
    }
}

/// Returns the value to compare a number with. In JSON, a number without a fraction is an integer,
/// and the API server truncates the bound before comparing an integer with it.
fn comparable(number: &Number, bound: &Number) -> Number {
    let cut = as_float(bound).trunc();
    match Number::from_f64(cut) {
        Some(cut) if is_whole(number) && bound.is_f64() => cut,
        _ => bound.clone(),
    }
}

/// Returns whether a number is a multiple of `factor`. For integers, the API server truncates the
/// factor, and nothing is a multiple of 0.
fn is_multiple(number: &Number, factor: &Number) -> bool {
    if is_whole(number) {
        let (number, factor) = (as_float(number).trunc(), as_float(factor).trunc());
        return factor > 0.0 && number % factor == 0.0;
    }
    let (number, factor) = (as_float(number), as_float(factor));
    // Divide as the API server does, since rounding can affect the result.
    let quotient = if factor < 1.0 {
        1.0 / factor * number
    } else {
        number / factor
    };
    let difference = (quotient - quotient.trunc()).abs();
    quotient.abs() <= MAX_WHOLE_FLOAT
        && (difference == 0.0 || difference / (quotient.abs() + quotient.trunc().abs()) < 1e-9)
}

fn check_format(number: &Number, schema: &Schema) -> Result<(), String> {
    match (schema.schema_type, schema.format.as_deref()) {
        (Some(SchemaType::Integer), Some("int32"))
            if !(-2_147_483_648.0..=2_147_483_647.0).contains(&as_float(number)) =>
        {
            Err(format!("{number} does not fit into 32 bits"))
        }
        (Some(SchemaType::Number), Some("float")) if as_float(number).abs() > f64::from(f32::MAX) => {
            Err(format!("{number} does not fit into 32 bits"))
        }
        _ => Ok(()),
    }
}
