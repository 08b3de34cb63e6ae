//! The bounds of a schema together with those of its `allOf`, which is where controller-gen puts the markers of a field
//! whose type has markers of the same names.

use std::cmp::Ordering;

use rbuilder_schema::{Schema, compare_numbers};
use serde_json::Number;

/// Returns the schema with the bounds that every value must keep to in place of its own. The parts of `allOf` stay.
pub(crate) fn tighten(schema: &Schema) -> Schema {
    let mut tight = schema.clone();
    for part in &schema.all_of {
        add_bounds(&tighten(part), &mut tight);
    }
    tight
}

fn add_bounds(part: &Schema, to: &mut Schema) {
    to.min_length = to.min_length.max(part.min_length);
    to.max_length = least(to.max_length, part.max_length);
    to.min_items = to.min_items.max(part.min_items);
    to.max_items = least(to.max_items, part.max_items);
    to.min_properties = to.min_properties.max(part.min_properties);
    to.max_properties = least(to.max_properties, part.max_properties);
    let limits = (&part.minimum, part.exclusive_minimum);
    limit(
        limits,
        (&mut to.minimum, &mut to.exclusive_minimum),
        Ordering::Greater,
    );
    let limits = (&part.maximum, part.exclusive_maximum);
    limit(
        limits,
        (&mut to.maximum, &mut to.exclusive_maximum),
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

fn least(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    left.into_iter().chain(right).min()
}

/// Takes a bound that is tighter, in the direction of `tighter`; of two that are equal, the one that excludes itself.
fn limit(new: (&Option<Number>, bool), old: (&mut Option<Number>, &mut bool), tighter: Ordering) {
    let Some(bound) = new.0 else { return };
    let is_tighter = old.0.as_ref().is_none_or(|old| {
        let order = compare_numbers(bound, old);
        order == tighter || order == Ordering::Equal && new.1
    });
    if is_tighter {
        (*old.0, *old.1) = (Some(bound.clone()), new.1);
    }
}

/// Returns the step of numbers that are multiples of both, as far as whole numbers tell it; the first otherwise.
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
