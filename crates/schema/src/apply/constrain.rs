//! Applies `validation(…)` to a schema: keeps the tighter of two constraints, and reports
//! contradictions.

use std::cmp::Ordering;

use rbuilder_diagnostic::Diagnostic;
use serde_json::{Number, Value};

use crate::number::is_integral;
use crate::satisfy::find_contradiction;
use crate::site::MarkerName;
use crate::structural::check_alternatives;
use crate::validate::{fits_constraints, is_in_format, validate};
use crate::{Schema, SchemaType, Validation, compare_numbers, format_type};

/// Turns bounds on the size into bounds on the length, the items or the properties, depending on
/// the type.
fn sized(validation: &Validation, schema: &Schema) -> Validation {
    let mut sized = validation.clone();
    let (least, most) = match schema.schema_type {
        Some(SchemaType::Array) => (&mut sized.min_items, &mut sized.max_items),
        Some(SchemaType::Object) => (&mut sized.min_properties, &mut sized.max_properties),
        _ => (&mut sized.min_length, &mut sized.max_length),
    };
    *least = least.or(sized.min_size.take());
    *most = most.or(sized.max_size.take());
    sized
}

pub(super) fn apply_constraints(
    validation: &Validation,
    schema: &mut Schema,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) {
    if validation.min_size.is_some() || validation.max_size.is_some() {
        return apply_constraints(&sized(validation, schema), schema, diagnostics);
    }
    let Validation {
        minimum,
        maximum,
        exclusive_minimum,
        exclusive_maximum,
        multiple_of,
        min_length,
        max_length,
        pattern,
        min_items,
        max_items,
        min_properties,
        max_properties,
        enumeration,
        alternatives,
        format,
        schema_type: _,
        min_size: _,
        max_size: _,
    } = validation;
    let numbers = [
        ("minimum", minimum),
        ("maximum", maximum),
        ("multiple_of", multiple_of),
    ];
    let numbers = numbers
        .into_iter()
        .filter_map(|(name, number)| Some((name, number.as_ref()?)));
    if fits(
        numbers.clone().map(|(name, _)| name),
        Subject::Number,
        schema,
        diagnostics,
    ) {
        check_whole(numbers, schema, diagnostics);
        tighten(
            &mut schema.minimum,
            &mut schema.exclusive_minimum,
            minimum,
            *exclusive_minimum,
            Ordering::Greater,
        );
        tighten(
            &mut schema.maximum,
            &mut schema.exclusive_maximum,
            maximum,
            *exclusive_maximum,
            Ordering::Less,
        );
        multiple(&mut schema.multiple_of, multiple_of.as_ref(), &mut schema.all_of);
    }
    let named = |name, set: bool| set.then_some(name);
    let texts = [
        named("min_length", min_length.is_some()),
        named("max_length", max_length.is_some()),
        named("pattern", pattern.is_some()),
    ];
    if fits(texts.into_iter().flatten(), Subject::Text, schema, diagnostics) {
        raise(&mut schema.min_length, *min_length);
        lower(&mut schema.max_length, *max_length);
        match_pattern(pattern.as_deref(), schema);
    }
    let lists = [
        named("min_items", min_items.is_some()),
        named("max_items", max_items.is_some()),
    ];
    if fits(lists.into_iter().flatten(), Subject::List, schema, diagnostics) {
        raise(&mut schema.min_items, *min_items);
        lower(&mut schema.max_items, *max_items);
    }
    let objects = [
        named("min_properties", min_properties.is_some()),
        named("max_properties", max_properties.is_some()),
    ];
    if fits(
        objects.into_iter().flatten(),
        Subject::Object,
        schema,
        diagnostics,
    ) {
        raise(&mut schema.min_properties, *min_properties);
        lower(&mut schema.max_properties, *max_properties);
    }
    restrict(enumeration, schema, diagnostics);
    if let Some(format) = format
        && format_suits(format, schema, diagnostics)
    {
        schema.format = Some(format.as_str().into());
    }
    if let Some(alternatives) = alternatives {
        join_alternatives(alternatives, schema, diagnostics);
    }
    drop_implied_bounds(schema);
}

/// Adds alternatives to a schema. A schema holds one list of each keyword, so a second list goes
/// under `allOf`.
fn join_alternatives(
    alternatives: &Schema,
    schema: &mut Schema,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) {
    let is_taken = !schema.one_of.is_empty() || !schema.any_of.is_empty() || schema.not.is_some();
    if is_taken {
        schema.all_of.push(alternatives.clone());
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

/// Returns whether the API server checks a format on this type, and reports it if not: the server
/// warns about such a format on every apply. An unknown format is reported elsewhere, when the
/// marker is read.
fn format_suits(format: &str, schema: &Schema, diagnostics: &mut Vec<Diagnostic<MarkerName>>) -> bool {
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

/// Removes a bound that the format already implies. The API server cannot represent `i64::MAX` as a
/// bound, and rejects every value if the schema has it.
pub(crate) fn drop_implied_bounds(schema: &mut Schema) {
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

#[derive(Clone, Copy)]
enum Subject {
    Number,
    Text,
    List,
    Object,
}

/// Returns whether these constraints apply to the schema, and reports each that does not.
fn fits(
    names: impl Iterator<Item = &'static str>,
    subject: Subject,
    schema: &Schema,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) -> bool {
    let (fits, noun) = match subject {
        Subject::Number => (
            matches!(schema.schema_type, Some(SchemaType::Integer | SchemaType::Number)),
            "numbers",
        ),
        Subject::Text => (
            schema.schema_type == Some(SchemaType::String) || schema.int_or_string,
            "strings",
        ),
        Subject::List => (schema.schema_type == Some(SchemaType::Array), "lists"),
        Subject::Object => (schema.schema_type == Some(SchemaType::Object), "maps and structs"),
    };
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

fn check_whole<'a>(
    numbers: impl Iterator<Item = (&'static str, &'a Number)>,
    schema: &Schema,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) {
    if schema.schema_type == Some(SchemaType::Integer) {
        for (name, number) in numbers.filter(|(_, number)| !is_integral(number)) {
            let diagnostic = Diagnostic::error(
                Some(name),
                format!("expected an integer for `{name}`, found `{number}`"),
            );
            diagnostics.push(diagnostic.help("write an integer, or change the type of the field"));
        }
    }
}

/// Replaces a bound if the new one is tighter. Of two equal bounds, the exclusive one is tighter.
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

/// Adds a `multipleOf`. A second factor goes under `allOf`, because neither of two factors implies
/// the other in general.
fn multiple(factor: &mut Option<Number>, new: Option<&Number>, all_of: &mut Vec<Schema>) {
    let Some(new) = new else { return };
    match factor {
        None => *factor = Some(new.clone()),
        Some(old) if old == new => {}
        Some(_) => all_of.push(Schema {
            multiple_of: Some(new.clone()),
            ..Schema::default()
        }),
    }
}

pub(super) fn raise(least: &mut Option<u64>, new: Option<u64>) {
    *least = (*least).max(new);
}

pub(super) fn lower(most: &mut Option<u64>, new: Option<u64>) {
    *most = match (*most, new) {
        (Some(old), Some(new)) => Some(old.min(new)),
        (old, new) => old.or(new),
    };
}

/// Adds a pattern. A second one goes under `allOf`: no single pattern in RE2 means "matches both".
fn match_pattern(pattern: Option<&str>, schema: &mut Schema) {
    match (schema.pattern.as_deref(), pattern) {
        (_, None) => {}
        (None, Some(new)) => schema.pattern = Some(new.into()),
        (Some(old), Some(new)) if old == new => {}
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

/// Checks the constraints of the type and of the marker together: they may contradict each other
/// even if each is valid alone.
pub(super) fn check_constraints(
    validation: &Validation,
    schema: &Schema,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) {
    if let Some(contradiction) = find_contradiction(schema) {
        diagnostics.push(
            Diagnostic::error(None, contradiction)
                .help("relax this constraint: the constraints of the type apply as well"),
        );
        return;
    }
    for value in &validation.enumeration {
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
