//! Merges the bounds in a schema's `allOf` into its own.
//!
//! If a field and its type have the same markers, controller-gen puts those of the field under
//! `allOf`, so the effective bounds are spread over both.

use std::cmp::Ordering;

use serde_json::Number;

use super::constrain::{bound_sizes, tighten};
use crate::Schema;

/// Returns a copy of the schema with the bounds of its `allOf` merged into its own. The `allOf`
/// itself is left unchanged.
pub fn with_bounds_of_parts(schema: &Schema) -> Schema {
    let mut whole = schema.clone();
    for part in &schema.all_of {
        add_bounds(&with_bounds_of_parts(part), &mut whole);
    }
    whole
}

fn add_bounds(part: &Schema, to: &mut Schema) {
    bound_sizes(part, to);
    tighten(
        &mut to.minimum,
        &mut to.exclusive_minimum,
        &part.minimum,
        part.exclusive_minimum,
        Ordering::Greater,
    );
    tighten(
        &mut to.maximum,
        &mut to.exclusive_maximum,
        &part.maximum,
        part.exclusive_maximum,
        Ordering::Less,
    );
    to.multiple_of = common_multiple(to.multiple_of.take(), part.multiple_of.clone());
    to.required.extend(part.required.iter().cloned());
    if to.enumeration.is_empty() {
        to.enumeration.clone_from(&part.enumeration);
    } else if !part.enumeration.is_empty() {
        to.enumeration.retain(|value| part.enumeration.contains(value));
    }
}

/// Returns the least common multiple of two positive integers, or else the first factor.
fn common_multiple(left: Option<Number>, right: Option<Number>) -> Option<Number> {
    let (Some(left), Some(right)) = (&left, &right) else {
        return left.or(right);
    };
    let whole = (
        left.as_u64().filter(|step| *step > 0),
        right.as_u64().filter(|step| *step > 0),
    );
    let (Some(first), Some(second)) = whole else {
        return Some(left.clone());
    };
    let (mut divisor, mut rest) = (first, second);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    Some(Number::from((first / divisor).saturating_mul(second)))
}
