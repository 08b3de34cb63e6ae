//! Finds contradictory constraints. The API server accepts such a schema, but then rejects every
//! value.

use std::cmp::Ordering;

use serde_json::Number;

use crate::number::{as_float, is_integral};
use crate::validate::{fits_constraints, is_in_format};
use crate::{Key, ListType, Schema, SchemaType, compare_numbers};

/// Returns the first reason why a schema rejects every value. Only considers the schema's own
/// constraints; nested schemas are checked separately.
pub(crate) fn find_contradiction(schema: &Schema) -> Option<String> {
    let of_sizes = || {
        let mut bounds = Key::size_pairs().map(|pair| pair.map(|(_, count)| *count.get(schema)));
        bounds.find_map(|[least, most]| crossed(least?, most?))
    };
    of_numbers(schema)
        .or_else(of_sizes)
        .or_else(|| of_items(schema))
        .or_else(|| of_fields(schema))
        .or_else(|| of_values(schema))
}

fn crossed(least: u64, most: u64) -> Option<String> {
    (least > most).then(|| format!("minimum {least} is greater than maximum {most}"))
}

fn of_numbers(schema: &Schema) -> Option<String> {
    let (low, high) = (schema.minimum.as_ref(), schema.maximum.as_ref());
    if let Some(bound) = [low, high]
        .into_iter()
        .flatten()
        .find(|bound| !is_in_format(bound, schema))
    {
        if !is_integral(bound) {
            return Some(format!(
                "no value is valid: the bound {bound} of an integer has a fraction"
            ));
        }
        let format = schema.format.as_deref().unwrap_or("int64");
        return Some(format!(
            "no value is valid: the bound {bound} is outside of the range of the format `{format}`"
        ));
    }
    if let (Some(low), Some(high)) = (low, high) {
        let is_open = schema.exclusive_minimum || schema.exclusive_maximum;
        let order = compare_numbers(low, high);
        if order == Ordering::Greater || (order == Ordering::Equal && is_open) {
            return Some(format!("minimum {low} is greater than maximum {high}"));
        }
    }
    let (least, most) = range_of(schema, 1.0)?;
    if schema.schema_type == Some(SchemaType::Integer) && least > most {
        return Some("no value is valid: there is no integer between the bounds".to_owned());
    }
    let factor = schema.multiple_of.as_ref()?;
    let (least, most) = range_of(schema, as_float(factor))?;
    (least > most).then(|| format!("no value is valid: there is no multiple of {factor} between the bounds"))
}

/// Returns the smallest and largest multiples of `factor` within the bounds, divided by `factor`.
/// Returns `None` without a bound, or if a bound is too large for an `f64` to represent every
/// integer up to it.
fn range_of(schema: &Schema, factor: f64) -> Option<(f64, f64)> {
    let quotient = |bound: &Number| Some(as_float(bound) / factor).filter(|quotient| quotient.abs() < 1e15);
    // A quotient can be slightly off, e.g. 0.3 / 0.1 is 2.9999999999999996.
    let near = |quotient: f64| (quotient - quotient.round()).abs() < 1e-9;
    let (low, high) = (
        quotient(schema.minimum.as_ref()?)?,
        quotient(schema.maximum.as_ref()?)?,
    );
    let least = if near(low) { low.round() } else { low.ceil() };
    let most = if near(high) { high.round() } else { high.floor() };
    Some((
        least + f64::from(u8::from(schema.exclusive_minimum && near(low))),
        most - f64::from(u8::from(schema.exclusive_maximum && near(high))),
    ))
}

/// Finds a set, or a list of type `map`, that requires more items than there are distinct values.
fn of_items(schema: &Schema) -> Option<String> {
    let items = schema.items.as_deref()?;
    let most = match schema.list_type? {
        ListType::Atomic => return None,
        ListType::Set => count_values(items)?,
        ListType::Map => {
            let keys = schema.list_map_keys.iter();
            let mut counts = keys.map(|key| count_values(items.properties.get(key.as_str())?));
            counts.try_fold(1_u64, |product, count| Some(product.saturating_mul(count?)))?
        }
    };
    let least = schema.min_items.filter(|least| *least > most)?;
    Some(format!(
        "no value is valid: at least {least} items are required, but only {most} different ones exist"
    ))
}

fn count_values(schema: &Schema) -> Option<u64> {
    if !schema.enumeration.is_empty() {
        return Some(schema.enumeration.len() as u64);
    }
    match schema.schema_type? {
        SchemaType::Boolean => Some(2),
        SchemaType::Integer => {
            let (least, most) = range_of(schema, 1.0)?;
            // Both are integers below 10^15.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let count = (most - least + 1.0).max(0.0) as u64;
            Some(count)
        }
        _ => None,
    }
}

fn of_fields(schema: &Schema) -> Option<String> {
    let required = schema.required.len() as u64;
    if let Some(most) = schema.max_properties.filter(|most| *most < required) {
        return Some(format!(
            "no value is valid: {required} fields are required, but at most {most} are allowed"
        ));
    }
    let is_closed = schema.schema_type == Some(SchemaType::Object)
        && !schema.properties.is_empty()
        && schema.additional_properties.is_none()
        && !schema.preserve_unknown_fields
        && !schema.embedded_resource;
    if let Some(missing) = schema
        .required
        .iter()
        .find(|name| is_closed && !schema.properties.contains_key(*name))
    {
        return Some(format!(
            "no value is valid: the required field `{missing}` does not exist"
        ));
    }
    let fields = schema.properties.len() as u64;
    let least = schema
        .min_properties
        .filter(|least| is_closed && *least > fields)?;
    Some(format!(
        "no value is valid: at least {least} fields are required, but only {fields} exist"
    ))
}

fn of_values(schema: &Schema) -> Option<String> {
    let reasons = schema
        .enumeration
        .iter()
        .map(|value| fits_constraints(value, schema).err());
    // `None` as soon as one value is valid.
    let reasons: Option<Vec<String>> = reasons.collect();
    let first = reasons?.into_iter().next()?;
    Some(format!("no value of the `enum` is valid: {first}"))
}
