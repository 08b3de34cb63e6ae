//! Applies `validation(…)` to a schema. Of two constraints on the same thing, the tighter one is
//! kept, and contradictory constraints are reported.

use std::cmp::Ordering;
use std::sync::Arc;

use rbuilder_diagnostic::Diagnostic;
use serde_json::{Number, Value};

use crate::number::is_integral;
use crate::satisfy::find_contradiction;
use crate::site::MarkerName;
use crate::structural::check_alternatives;
use crate::validate::{fits_constraints, is_in_format, validate};
use crate::{Form, Key, Markers, Schema, SchemaType, Side, Subject, compare_numbers, format_type};

fn sized(markers: &Markers, schema: &Schema) -> Schema {
    let mut sized = markers.stated().clone();
    // The constraint for a size depends on the type, e.g. `min_size` becomes `minItems` on a list.
    let (least, most) = match schema.schema_type {
        Some(SchemaType::Array) => (&mut sized.min_items, &mut sized.max_items),
        Some(SchemaType::Object) => (&mut sized.min_properties, &mut sized.max_properties),
        _ => (&mut sized.min_length, &mut sized.max_length),
    };
    *least = least.or(markers.min_size);
    *most = most.or(markers.max_size);
    sized
}

pub(super) fn apply_constraints(
    markers: &Markers,
    schema: &mut Schema,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) {
    if markers.min_size.is_some() || markers.max_size.is_some() {
        tighten_all(&sized(markers, schema), schema, diagnostics);
    } else if let Some(constraints) = &markers.stated {
        tighten_all(constraints, schema, diagnostics);
    }
    drop_implied_bounds(schema);
}

fn tighten_all(constraints: &Schema, schema: &mut Schema, diagnostics: &mut Vec<Diagnostic<MarkerName>>) {
    let set: Vec<&Key> = Key::arguments().filter(|key| key.is_set(constraints)).collect();
    for subject in [Subject::Number, Subject::Text, Subject::List, Subject::Object] {
        let of_subject = set.iter().filter(|key| key.subject == subject);
        if of_subject.clone().next().is_none() {
            continue;
        }
        // `exclusiveMinimum` and the like are flags that only modify a bound, so they aren't
        // reported separately.
        let stated = of_subject.filter(|key| !matches!(key.form, Form::Flag(_)));
        if !fits(stated.map(|key| key.argument), subject, schema, diagnostics) {
            continue;
        }
        match subject {
            Subject::Number => tighten_numbers(constraints, schema, diagnostics),
            Subject::Text => match_pattern(constraints.pattern.as_deref(), schema),
            _ => {}
        }
        bound_sizes_of(subject, constraints, schema);
    }
    restrict(&constraints.enumeration, schema, diagnostics);
    if let Some(format) = &constraints.format
        && format_suits(format, schema, diagnostics)
    {
        schema.format = Some(Arc::clone(format));
    }
    let alternatives = [&constraints.all_of, &constraints.any_of, &constraints.one_of];
    if constraints.not.is_some() || alternatives.iter().any(|parts| !parts.is_empty()) {
        join_alternatives(constraints, schema, diagnostics);
    }
}

fn tighten_numbers(constraints: &Schema, schema: &mut Schema, diagnostics: &mut Vec<Diagnostic<MarkerName>>) {
    check_whole(constraints, schema, diagnostics);
    tighten(
        &mut schema.minimum,
        &mut schema.exclusive_minimum,
        &constraints.minimum,
        constraints.exclusive_minimum,
        Ordering::Greater,
    );
    tighten(
        &mut schema.maximum,
        &mut schema.exclusive_maximum,
        &constraints.maximum,
        constraints.exclusive_maximum,
        Ordering::Less,
    );
    multiple(
        &mut schema.multiple_of,
        constraints.multiple_of.as_ref(),
        &mut schema.all_of,
    );
}

fn bound_sizes_of(subject: Subject, constraints: &Schema, schema: &mut Schema) {
    for (_, count, side) in Key::sizes().filter(|(key, ..)| key.subject == subject) {
        tighten_size(count.get_mut(schema), *count.get(constraints), side);
    }
}

pub(super) fn bound_sizes(new: &Schema, schema: &mut Schema) {
    for (_, count, side) in Key::sizes() {
        tighten_size(count.get_mut(schema), *count.get(new), side);
    }
}

fn tighten_size(bound: &mut Option<u64>, new: Option<u64>, side: Side) {
    *bound = match (*bound, new, side) {
        (Some(old), Some(new), Side::Lower) => Some(old.max(new)),
        (Some(old), Some(new), Side::Upper) => Some(old.min(new)),
        (old, new, _) => old.or(new),
    };
}

fn join_alternatives(
    alternatives: &Schema,
    schema: &mut Schema,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) {
    // A schema can have only one list per keyword, so if there are alternatives already, put the
    // new ones under `allOf`.
    let is_taken = !schema.one_of.is_empty() || !schema.any_of.is_empty() || schema.not.is_some();
    if is_taken {
        schema
            .all_of
            .push(alternatives.only(|key| matches!(key.form, Form::Part(_) | Form::Parts(_))));
    } else {
        schema.all_of.extend(alternatives.all_of.iter().cloned());
        schema.any_of.clone_from(&alternatives.any_of);
        schema.one_of.clone_from(&alternatives.one_of);
        schema.not.clone_from(&alternatives.not);
    }
    for diagnostic in check_alternatives(schema) {
        let invalid = format!("invalid alternative `{}`", diagnostic.place);
        diagnostics.push(
            diagnostic
                .map_message(|message| format!("{invalid}: {message}"))
                .at(None),
        );
    }
}

fn format_suits(format: &str, schema: &Schema, diagnostics: &mut Vec<Diagnostic<MarkerName>>) -> bool {
    // The API server would warn about a mismatched format on every `kubectl apply`. Unknown formats
    // were already reported when the marker was read.
    let noun = match format_type(format) {
        Some(SchemaType::Integer) if schema.schema_type != Some(SchemaType::Integer) => "integers",
        Some(SchemaType::Number) if schema.schema_type != Some(SchemaType::Number) => "numbers",
        Some(SchemaType::String)
            if schema.schema_type != Some(SchemaType::String) && !schema.int_or_string =>
        {
            "strings"
        }
        _ => return true,
    };
    let this = schema.noun();
    diagnostics.push(Diagnostic::error(
        Some("format"),
        format!("the format `{format}` applies to {noun}; this value is {this}"),
    ));
    false
}

/// Removes a bound that the format implies. The API server can't represent `i64::MAX` as a bound
/// and would reject every value.
pub(crate) fn drop_implied_bounds(schema: &mut Schema) {
    // Only the outer side is implied. A minimum above the range, for example, rejects every value,
    // which is reported as a contradiction.
    let is_implied = |bound: &Option<Number>, is_positive: bool| {
        bound.as_ref().is_some_and(|bound| {
            !is_in_format(bound, schema)
                && is_integral(bound)
                && (crate::number::as_float(bound) > 0.0) == is_positive
        })
    };
    let (low, high) = (
        is_implied(&schema.minimum, false),
        is_implied(&schema.maximum, true),
    );
    if low {
        schema.minimum = None;
        schema.exclusive_minimum = false;
    }
    if high {
        schema.maximum = None;
        schema.exclusive_maximum = false;
    }
}

/// Returns whether the schema has a type that these constraints apply to. Otherwise, reports each
/// of them.
fn fits(
    names: impl Iterator<Item = &'static str>,
    subject: Subject,
    schema: &Schema,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) -> bool {
    let includes = schema.schema_type.is_some_and(|found| subject.includes(found));
    let fits = includes || (subject == Subject::Text && schema.int_or_string);
    let noun = subject.rust_noun();
    if !fits {
        let this = schema.noun();
        diagnostics.extend(names.map(|name| {
            Diagnostic::error(
                Some(name),
                format!("`{name}` applies to {noun}; this value is {this}"),
            )
        }));
    }
    fits
}

fn check_whole(constraints: &Schema, schema: &Schema, diagnostics: &mut Vec<Diagnostic<MarkerName>>) {
    if schema.schema_type != Some(SchemaType::Integer) {
        return;
    }
    for (key, number) in Key::numbers(constraints).filter(|(_, number)| !is_integral(number)) {
        let name = key.argument;
        let message = format!("expected an integer for `{name}`, found `{number}`");
        let help = "write an integer, or change the type of the field";
        diagnostics.push(Diagnostic::error(Some(name), message).help(help));
    }
}

/// Replaces a bound if the new one is tighter. For equal numbers, the exclusive bound is tighter.
pub(super) fn tighten(
    bound: &mut Option<Number>,
    exclusive: &mut bool,
    new: &Option<Number>,
    new_exclusive: bool,
    tighter: Ordering,
) {
    let Some(new) = new else { return };
    let order = bound
        .as_ref()
        .map_or(tighter, |bound| compare_numbers(new, bound));
    if order == tighter {
        *bound = Some(new.clone());
        *exclusive = new_exclusive;
    } else if order == Ordering::Equal {
        *exclusive |= new_exclusive;
    }
}

fn multiple(factor: &mut Option<Number>, new: Option<&Number>, all_of: &mut Vec<Schema>) {
    let Some(new) = new else { return };
    match factor {
        None => *factor = Some(new.clone()),
        Some(old) if old == new => {}
        // Neither factor need imply the other, e.g. 4 and 6, so keep both.
        Some(_) => all_of.push(Schema {
            multiple_of: Some(new.clone()),
            ..Schema::default()
        }),
    }
}

fn match_pattern(pattern: Option<&str>, schema: &mut Schema) {
    match (schema.pattern.as_deref(), pattern) {
        (_, None) => {}
        (None, Some(new)) => schema.pattern = Some(new.into()),
        (Some(old), Some(new)) if old == new => {}
        // RE2 can't express "matches both" in a single pattern.
        (Some(_), Some(new)) => {
            schema.all_of.push(Schema {
                pattern: Some(new.into()),
                ..Schema::default()
            });
        }
    }
}

fn restrict(allowed: &[Value], schema: &mut Schema, diagnostics: &mut Vec<Diagnostic<MarkerName>>) {
    if allowed.is_empty() {
        return;
    }
    for value in allowed {
        // Only the type matters here. The other constraints are checked once all of them are known.
        let type_only = Schema {
            schema_type: schema.schema_type,
            int_or_string: schema.int_or_string,
            preserve_unknown_fields: true,
            nullable: schema.nullable,
            ..Schema::default()
        };
        if let Err(reason) = validate(value, &type_only) {
            diagnostics.push(Diagnostic::error(
                Some("enum"),
                format!("invalid `enum` value: {reason}"),
            ));
        }
    }
    if schema.enumeration.is_empty() {
        schema.enumeration = allowed.to_vec();
        return;
    }
    let both: Vec<_> = schema
        .enumeration
        .iter()
        .filter(|value| allowed.contains(value))
        .cloned()
        .collect();
    if both.is_empty() {
        let of_type: Vec<_> = schema.enumeration.iter().map(Value::to_string).collect();
        let diagnostic = Diagnostic::error(
            Some("enum"),
            "no value of this `enum` is in the `enum` of the type",
        );
        diagnostics.push(diagnostic.help(format!("use values of the type: {}", of_type.join(", "))));
        return;
    }
    schema.enumeration = both;
}

pub(super) fn check_constraints(
    constraints: &Schema,
    schema: &Schema,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) {
    // The constraints of the type and of the marker may contradict each other even if they are fine
    // separately.
    if let Some(contradiction) = find_contradiction(schema) {
        diagnostics.push(
            Diagnostic::error(None, contradiction)
                .help("relax this constraint: the constraints of the type apply as well"),
        );
        return;
    }
    for value in &constraints.enumeration {
        if schema.enumeration.contains(value)
            && let Err(reason) = fits_constraints(value, schema)
        {
            diagnostics.push(Diagnostic::error(
                Some("enum"),
                format!("`enum` value can never be valid: {reason}"),
            ));
        }
    }
}
