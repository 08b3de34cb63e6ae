//! Checks the markers on a single item, independently of other items.

use rbuilder_re2::Pattern;
use rbuilder_reader::Span;
use rbuilder_schema::{
    FORMATS, Key, ListType, Markers, Schema, SchemaType, Side, Subject, array_of, check_markers, format_type,
    map_of, of_type,
};
use serde_json::{Number, Value};

use super::{Kind, Reading};
use crate::{Diagnostic, Session, suggest};

pub(super) fn check_reading(reading: &Reading, session: &mut Session) {
    bounds(reading, session);
    subjects(reading, session);
    preserved_subject(reading, session);
    whole_numbers(reading, session);
    texts(reading, session);
    values(reading, session);
    // A marker that seems to be missing may be one that failed to parse.
    if !reading.is_incomplete {
        companions(reading, session);
    }
}

/// Checks that the markers on an item are consistent with each other. Skipped unless the item's
/// kind is clear from its declared type alone.
pub(super) fn check_consistency(reading: &Reading, session: &mut Session) {
    let Markers {
        default,
        items,
        values,
        topology,
        ..
    } = &reading.markers;
    let constraints = reading.markers.stated();
    let has_value_markers = default.is_some()
        || !constraints.enumeration.is_empty()
        || constraints.multiple_of.is_some()
        || topology.list_type.is_some()
        || items.is_some()
        || values.is_some();
    if !has_value_markers || default.as_ref().is_some_and(has_null) {
        return;
    }
    let Some(schema) = schema_of(effective_kind(reading)) else {
        return;
    };
    let first = reading.seen.iter().next().map(|(_, span)| span);
    for diagnostic in check_markers(&reading.markers, schema) {
        let at = diagnostic.place.and_then(|name| reading.seen.at(name)).or(first);
        session.report(diagnostic.at(at.unwrap_or_default()));
    }
}

/// Returns true if the value contains a `null`, which an `Option` in the type may allow.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

/// Returns `None` unless all parts of the kind are known.
fn schema_of(kind: &Kind) -> Option<Schema> {
    Some(match kind {
        Kind::Text => of_type(SchemaType::String),
        Kind::Integer => of_type(SchemaType::Integer),
        Kind::Number => of_type(SchemaType::Number),
        Kind::Boolean => of_type(SchemaType::Boolean),
        Kind::List(item) => array_of(schema_of(item)?),
        Kind::Map(value) => map_of(&of_type(SchemaType::String), schema_of(value)?),
        Kind::Object | Kind::Unknown => return None,
    })
}

/// Returns the kind that constraints must match. Unknown if a marker replaces the type.
fn effective_kind(reading: &Reading) -> &Kind {
    let Markers {
        int_or_string,
        schemaless,
        schema,
        ..
    } = &reading.markers;
    let replaced = *int_or_string || *schemaless || schema.is_some() || reading.schema_type.is_some();
    if replaced || reading.markers.stated().schema_type.is_some() {
        &Kind::Unknown
    } else {
        &reading.kind
    }
}

fn bounds(reading: &Reading, session: &mut Session) {
    let constraints = reading.markers.stated();
    if let (Some(low), Some(high)) = (&constraints.minimum, &constraints.maximum) {
        let empty = constraints.exclusive_minimum || constraints.exclusive_maximum;
        if exceeds(low, high) || (empty && !exceeds(high, low)) {
            crossed(reading, "minimum", low, "maximum", high, session);
        }
    }
    for [(low_key, low), (high_key, high)] in Key::size_pairs() {
        if let (Some(low), Some(high)) = (low.get(constraints), high.get(constraints))
            && low > high
        {
            crossed(reading, low_key.argument, low, high_key.argument, high, session);
        }
    }
    if let Some(factor) = &constraints.multiple_of
        && factor.as_f64().is_some_and(|factor| factor <= 0.0)
    {
        let help = "write a number greater than 0";
        session.error_help(
            reading.at("multiple_of"),
            format!("`multiple_of` must be greater than 0, found {factor}"),
            help,
        );
    }
}

fn crossed(
    reading: &Reading,
    low_name: &str,
    low: &dyn std::fmt::Display,
    high_name: &str,
    high: &dyn std::fmt::Display,
    session: &mut Session,
) {
    let message = format!("`{low_name}` {low} is greater than `{high_name}` {high}");
    session.error(reading.at(low_name), message);
}

fn exceeds(left: &Number, right: &Number) -> bool {
    rbuilder_schema::compare_numbers(left, right) == std::cmp::Ordering::Greater
}

fn subjects(reading: &Reading, session: &mut Session) {
    let kind = effective_kind(reading);
    if *kind == Kind::Unknown {
        return;
    }
    for (name, at) in reading.seen.iter() {
        // `reading.seen` also contains `default` and a few others that aren't constraints. That's
        // harmless, because no constraint shares their names.
        let Some(key) = Key::of_argument(name) else {
            continue;
        };
        if name == "format" {
            format_subject(reading, at, kind, session);
            continue;
        }
        if fits(key.subject, kind) {
            continue;
        }
        let message = format!(
            "`{name}` applies to {}; this field is {}",
            key.subject.rust_noun(),
            kind.noun()
        );
        let diagnostic = Diagnostic::error(at, message);
        session.report(match instead(key, kind) {
            Some(other) => diagnostic.help(format!("write `{other}`")),
            None => diagnostic,
        });
    }
}

fn preserved_subject(reading: &Reading, session: &mut Session) {
    // Only objects, or objects in lists, have unknown fields.
    let kind = effective_kind(reading);
    if has_objects(kind) || !reading.is_read("preserve_unknown_fields") {
        return;
    }
    let message = format!(
        "`preserve_unknown_fields` applies to maps, structs and lists of them; this field is {}",
        kind.noun()
    );
    let at = reading.at("preserve_unknown_fields");
    session.report(Diagnostic::warning(at, message).help("remove it: it has no effect"));
}

fn has_objects(kind: &Kind) -> bool {
    match kind {
        Kind::List(items) => has_objects(items),
        kind => matches!(kind, Kind::Map(_) | Kind::Object | Kind::Unknown),
    }
}

/// Reports a format for another type: the API server ignores it and warns on every apply.
fn format_subject(reading: &Reading, at: Span, kind: &Kind, session: &mut Session) {
    let Some(format) = &reading.markers.stated().format else {
        return;
    };
    let (fits, noun) = match format_type(format) {
        Some(SchemaType::Integer) => (*kind == Kind::Integer, "integers"),
        Some(SchemaType::Number) => (*kind == Kind::Number, "numbers"),
        Some(SchemaType::String) => (*kind == Kind::Text, "strings"),
        _ => return,
    };
    if !fits {
        let message = format!(
            "the format `{format}` applies to {noun}; this field is {}",
            kind.noun()
        );
        session.error(at, message);
    }
}

fn fits(subject: Subject, kind: &Kind) -> bool {
    match subject {
        Subject::Any | Subject::Open => true,
        Subject::Number => matches!(kind, Kind::Integer | Kind::Number),
        Subject::Text => *kind == Kind::Text,
        Subject::List => matches!(kind, Kind::List(_)),
        Subject::Object => matches!(kind, Kind::Map(_) | Kind::Object),
    }
}

/// Returns our name of the same constraint for this kind, e.g. `max_items` for `max_length`.
fn instead(key: &Key, kind: &Kind) -> Option<&'static str> {
    let (least, most) = match kind {
        Kind::Text => ("min_length", "max_length"),
        Kind::Integer | Kind::Number => ("minimum", "maximum"),
        Kind::List(_) => ("min_items", "max_items"),
        Kind::Map(_) | Kind::Object => ("min_properties", "max_properties"),
        Kind::Boolean | Kind::Unknown => return None,
    };
    match key.side? {
        Side::Lower => Some(least),
        Side::Upper => Some(most),
    }
}

fn whole_numbers(reading: &Reading, session: &mut Session) {
    if *effective_kind(reading) != Kind::Integer {
        return;
    }
    for (key, number) in Key::numbers(reading.markers.stated()) {
        let name = key.argument;
        if number.as_f64().is_some_and(|value| value.fract() != 0.0) {
            let message = format!("expected an integer for `{name}`, found `{number}`");
            session.error_help(
                reading.at(name),
                message,
                "write an integer, or change the type of the field",
            );
        }
    }
}

fn texts(reading: &Reading, session: &mut Session) {
    let Schema { pattern, format, .. } = reading.markers.stated();
    if let Some(text) = pattern
        && !session.is_good_pattern(text)
        && let Err(reason) = Pattern::parse(text).map(|_| session.keep_good_pattern(text))
    {
        let help = "use RE2 syntax, as in Go: https://github.com/google/re2/wiki/Syntax";
        session.error_help(reading.at("pattern"), format!("invalid pattern: {reason}"), help);
    }
    if let Some(format) = format
        && !FORMATS.contains(&&**format)
    {
        let help = match suggest::find_nearest(format, FORMATS.iter().copied()) {
            Some(known) => format!("did you mean `{known}`?"),
            None => "remove it: it has no effect".to_owned(),
        };
        let message = format!("unknown format `{format}`");
        session.report(Diagnostic::warning(reading.at("format"), message).help(help));
    }
}

/// Reports literals in `default`, `example` and `enum` that don't match the kind of the value.
fn values(reading: &Reading, session: &mut Session) {
    let default = &reading.markers.default;
    let example = &reading.markers.stated().example;
    let kind = effective_kind(reading);
    for (name, value) in [("default", default), ("example", example)] {
        if let Some(value) = value
            && !is(value, kind)
            && !(value.is_null() && reading.markers.nullable)
        {
            session.error(
                reading.at(name),
                format!("expected {} for `{name}`, found {}", kind.noun(), sort(value)),
            );
        }
    }
    let allowed = &reading.markers.stated().enumeration;
    for (position, value) in allowed.iter().enumerate() {
        if allowed[..position].iter().any(|other| is_same(other, value)) {
            session.error(reading.at("enum"), format!("duplicate `enum` value {value}"));
        } else if value.is_null() && *kind != Kind::Unknown && !reading.markers.nullable {
            let message = "`enum` contains `null`, but the value is not nullable";
            session.error_help(reading.at("enum"), message, "add `nullable`, or remove `null`");
        } else if !is(value, kind) && !value.is_null() {
            session.error(
                reading.at("enum"),
                format!("expected {} in `enum`, found {value}", kind.noun()),
            );
        }
    }
}

fn is(value: &Value, kind: &Kind) -> bool {
    match kind {
        Kind::Unknown => true,
        Kind::Text => value.is_string(),
        Kind::Integer => value.is_i64() || value.is_u64(),
        Kind::Number => value.is_number(),
        Kind::Boolean => value.is_boolean(),
        Kind::List(item) => value
            .as_array()
            .is_some_and(|items| items.iter().all(|value| value.is_null() || is(value, item))),
        Kind::Map(item) => value
            .as_object()
            .is_some_and(|map| map.values().all(|value| value.is_null() || is(value, item))),
        Kind::Object => value.is_object(),
    }
}

/// Compares numbers by value, so `1` equals `1.0`.
fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => rbuilder_schema::compare_numbers(left, right).is_eq(),
        _ => left == right,
    }
}

fn sort(value: &Value) -> &'static str {
    match value {
        Value::Null => "`null`",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

fn exclusive_bounds(reading: &Reading, session: &mut Session) {
    let Schema {
        minimum,
        maximum,
        exclusive_minimum,
        exclusive_maximum,
        ..
    } = reading.markers.stated();
    for (exclusive, name, bound_name, bound) in [
        (*exclusive_minimum, "exclusive_minimum", "minimum", minimum),
        (*exclusive_maximum, "exclusive_maximum", "maximum", maximum),
    ] {
        if exclusive && bound.is_none() {
            let help = format!("add `{bound_name} = …`: `{name}` excludes only this bound");
            session.error_help(
                reading.at(name),
                format!("`{name}` requires `{bound_name}`"),
                help,
            );
        }
    }
}

fn companions(reading: &Reading, session: &mut Session) {
    exclusive_bounds(reading, session);
    let topology = &reading.markers.topology;
    match (topology.list_type, topology.list_map_keys.as_slice()) {
        (Some(ListType::Map), []) => {
            let help = "add `list_map_keys = [\"name\"]` with the fields that identify an item";
            session.error_help(
                reading.at("list_type"),
                "a list of type `map` requires keys",
                help,
            );
        }
        (Some(ListType::Map), keys) => {
            for (position, key) in keys.iter().enumerate() {
                if keys[..position].contains(key) {
                    session.error(reading.at("list_map_keys"), format!("duplicate key `{key}`"));
                }
            }
        }
        (_, [_, ..]) => {
            let help = "add `list_type = \"map\"`";
            session.error_help(
                reading.at("list_map_keys"),
                "`list_map_keys` requires a list of type `map`",
                help,
            );
        }
        _ => {}
    }
}
