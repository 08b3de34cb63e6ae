//! Valid objects of a schema, made invalid in a few fields.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use rbuilder_schema::Schema;
use serde_json::{Number, Value, json};

/// The exceptions, by path.
pub trait Limits {
    /// Returns `true` if the field is limited to given values.
    fn is_limited(&self, path: &str) -> bool;
    /// Returns `true` if the field is always present, whatever the schema says.
    fn is_present(&self, path: &str) -> bool;
}

/// A change that may make a value invalid.
#[derive(Clone, Debug)]
pub enum Spoil {
    /// Removes the value.
    Remove,
    /// Replaces the value by null.
    Null,
    /// Replaces the value by another one, usually of another type or at a limit.
    Other(Value),
    /// Duplicates the last item.
    Repeat,
    /// Adds an unknown field.
    Extra,
}

/// Generates changes, each with the index of the path at which to make it.
pub fn spoils() -> impl Strategy<Value = Vec<(Index, Spoil)>> {
    let numbers = [
        -1_i64, 0, 1, 6, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2147483647, 2147483648, 4294967295,
        4294967296,
    ];
    let others = numbers
        .into_iter()
        .map(Value::from)
        .chain([
            json!(-2147483649_i64),
            json!(i64::MAX),
            json!(1.5),
            json!(""),
            json!("On"),
            json!("unknown"),
            json!(true),
            json!([]),
            json!({}),
        ])
        .collect::<Vec<_>>();
    let spoil = prop_oneof![
        2 => Just(Spoil::Remove),
        1 => Just(Spoil::Null),
        4 => select(others).prop_map(Spoil::Other),
        1 => Just(Spoil::Repeat),
        1 => Just(Spoil::Extra),
    ];
    prop_oneof![2 => Just(Vec::new()), 3 => vec((any::<Index>(), spoil), 1..3)]
}

/// Makes changes, but only to fields for which the result can be predicted.
pub fn spoil(value: &mut Value, schema: &Schema, path: &str, spoils: &[(Index, Spoil)], limits: &dyn Limits) {
    for (index, spoil) in spoils {
        let mut places = Vec::new();
        collect(value, schema, path, "", limits, &mut places);
        if places.is_empty() {
            return;
        }
        let (pointer, judged) = &places[index.index(places.len())];
        if judged.allows(spoil) {
            apply(value, pointer, spoil);
        }
    }
}

/// Replacements of a field whose result can be predicted.
#[derive(Clone, Copy, PartialEq)]
enum Judged {
    Everything,
    /// All except strings, which would have to match a format or a pattern.
    NoText,
    /// Strings and 32-bit numbers. An `IntOrString` can't hold larger ones, which the schema can't
    /// express.
    IntOrString,
    /// None, because of an exception.
    Nothing,
    /// None. The result of removing the field can't be predicted either.
    Present,
}

impl Judged {
    fn of(schema: &Schema, path: &str, limits: &dyn Limits) -> Judged {
        let has_form = schema
            .format
            .as_deref()
            .is_some_and(|format| !format.starts_with("int"))
            || schema.pattern.is_some()
            || schema.all_of.iter().any(|part| part.pattern.is_some());
        match schema {
            _ if limits.is_present(path) => Judged::Present,
            _ if limits.is_limited(path) => Judged::Nothing,
            // For an integer, the API server truncates the factor, and it can't divide by 0.
            schema if schema.multiple_of.as_ref().is_some_and(Number::is_f64) => Judged::Nothing,
            _ if has_form => Judged::NoText,
            schema if schema.int_or_string => Judged::IntOrString,
            _ => Judged::Everything,
        }
    }

    fn allows(self, spoil: &Spoil) -> bool {
        let Spoil::Other(other) = spoil else {
            return match self {
                Judged::Nothing => matches!(spoil, Spoil::Remove),
                Judged::Present => false,
                _ => true,
            };
        };
        let is_small = |number: i64| i32::try_from(number).is_ok();
        match self {
            Judged::Everything => true,
            Judged::NoText => !other.is_string() && other.as_i64().is_none_or(is_small),
            Judged::IntOrString => other.as_i64().is_none_or(is_small),
            Judged::Nothing | Judged::Present => false,
        }
    }
}

fn collect(
    value: &Value,
    schema: &Schema,
    path: &str,
    at: &str,
    limits: &dyn Limits,
    places: &mut Vec<(String, Judged)>,
) {
    if limits.is_limited(path) {
        return;
    }
    let mut descend = |value: &Value, inner: &Schema, path: String, at: String| {
        places.push((at.clone(), Judged::of(inner, &path, limits)));
        collect(value, inner, &path, &at, limits, places);
    };
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                if let Some(inner) = schema.properties.get(name.as_str()) {
                    descend(value, inner, format!("{path}.{name}"), at);
                } else if let Some(inner) = &schema.additional_properties {
                    descend(value, inner, format!("{path}{{}}"), at);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(inner) = &schema.items {
                    descend(item, inner, format!("{path}[]"), format!("{at}/{index}"));
                }
            }
        }
        _ => {}
    }
}

fn apply(value: &mut Value, pointer: &str, spoil: &Spoil) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return;
    };
    let name = name.replace("~1", "/").replace("~0", "~");
    match spoil {
        Spoil::Remove => match value.pointer_mut(parent) {
            Some(Value::Object(fields)) => drop(fields.remove(&name)),
            Some(Value::Array(items)) => drop(items.pop()),
            _ => {}
        },
        Spoil::Null | Spoil::Other(_) => {
            if let Some(place) = value.pointer_mut(pointer) {
                *place = match spoil {
                    Spoil::Other(other) => other.clone(),
                    _ => Value::Null,
                };
            }
        }
        Spoil::Repeat => {
            if let Some(Value::Array(items)) = value.pointer_mut(parent)
                && let Some(last) = items.last().cloned()
            {
                items.push(last);
            }
        }
        Spoil::Extra => {
            if let Some(Value::Object(fields)) = value.pointer_mut(parent) {
                fields.insert("nobodyKnowsThis".into(), json!(1));
            }
        }
    }
}
