//! Markers onto a schema: what each marker means.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Number, Value};

use crate::build::{allow_null, int_or_string};
use crate::number::is_integral;
use crate::rework::{self as meta, is_bare, keep_object_meta, shorten_descriptions};
use crate::satisfy::find_contradiction;
use crate::structural::{check_alternatives, check_list_map};
use crate::validate::{check_default, fits_constraints, is_in_format, validate};
use crate::{Cel, ListType, Markers, Schema, SchemaType, Topology, Validation, compare_numbers, format_type};

/// What is wrong with a marker on the schema it was put on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Complaint {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Complaint {
            message: message.into(),
            help: None,
        }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Checks markers on a value of a known type, before the rest of its schema is: what is wrong here is wrong wherever the
/// value stands. Returns each message with its help.
pub fn check_markers(markers: &Markers, mut schema: Schema) -> Vec<(String, Option<String>)> {
    let mut complaints = Vec::new();
    apply(markers, &mut schema, &mut complaints);
    let complaints = complaints.into_iter();
    complaints
        .map(|Complaint { message, help }| (message, help))
        .collect()
}

/// Puts markers onto the schema of the value they are about. Where both constrain the same thing the tighter
/// one holds, whichever side it comes from.
pub(crate) fn apply(markers: &Markers, schema: &mut Schema, complaints: &mut Vec<Complaint>) {
    // Destructured, so that a new marker cannot be forgotten here. What is about a field in its parent
    // (`immutable`, `optional`) and about several fields (`one_of`) is for the assembly of the parent.
    let Markers {
        validation,
        items,
        keys,
        values,
        cel,
        one_of: _,
        immutable: _,
        default,
        example,
        optional: _,
        nullable,
        topology,
        embedded_resource,
        preserve_unknown_fields,
        int_or_string,
        schemaless: _,
        schema: literal,
        title,
        external_docs,
        embedded_object_meta,
        max_description_length,
        origin: _,
    } = markers;
    let had = complaints.len();
    if let Some(literal) = literal {
        let description = schema.description.take();
        *schema = Schema::clone(literal);
        schema.description = description.or(schema.description.take());
    }
    retype(validation.schema_type, *int_or_string, schema);
    schema.nullable |= nullable;
    constrain(validation, schema, complaints);
    schema.preserve_unknown_fields |= preserve_unknown_fields;
    if *embedded_resource {
        embed(schema, complaints);
    }
    apply_inner(
        items.as_deref(),
        schema.items.as_mut().map(Arc::make_mut),
        "items",
        "a list",
        complaints,
    );
    apply_inner(
        values.as_deref(),
        schema.additional_properties.as_mut().map(Arc::make_mut),
        "values",
        "a map",
        complaints,
    );
    if let Some(keys) = keys {
        schema.validations.splice(0..0, key_rules(keys, complaints));
    }
    // As controller-gen merges: the rules of a field come before those of its type.
    schema.validations.splice(0..0, cel.iter().cloned());
    merge_as(topology, schema, complaints);
    if *embedded_object_meta && !keep_object_meta_of(schema) {
        let complaint = Complaint::new("there is no `metadata` of an embedded object here");
        complaints.push(complaint.help("remove `embedded_object_meta`"));
    }
    if let Some(most) = max_description_length {
        shorten_descriptions(schema, *most);
    }
    override_text(&mut schema.title, title.as_deref());
    if let Some(docs) = external_docs {
        schema.external_docs = Some(Box::new(docs.clone()));
    }
    override_with(&mut schema.example, example.as_ref());
    override_with(&mut schema.default, default.as_ref());
    if narrows(markers) && complaints.len() == had {
        check_constraints(&markers.validation, schema, complaints);
    }
    check_values(markers, schema, complaints);
    if schema.default == Some(Value::Null) {
        schema.default = None;
    }
    if schema.nullable && !schema.enumeration.is_empty() {
        allow_null(schema);
    }
}

/// Values that are written out must be values of the schema. A default of the type is asked again where the field
/// asks for more than the type does.
fn check_values(markers: &Markers, schema: &Schema, complaints: &mut Vec<Complaint>) {
    if let Some(default) = &markers.default {
        if let Err(reason) = check_default(default, schema) {
            complaints.push(Complaint::new(format!("the default does not fit: {reason}")));
        }
    } else if let Some(default) = &schema.default
        && narrows(markers)
        && let Err(reason) = check_default(default, schema)
    {
        let complaint = Complaint::new(format!("the default of the type does not fit here: {reason}"));
        complaints.push(complaint.help("write a `default` on the field"));
    }
    if let Some(example) = &markers.example
        && let Err(reason) = validate(example, schema)
    {
        complaints.push(Complaint::new(format!("the example does not fit: {reason}")));
    }
}

/// Whether markers ask for more than the type does.
fn narrows(markers: &Markers) -> bool {
    markers.validation != Validation::default()
        || markers.topology != Topology::default()
        || markers.items.is_some()
        || markers.keys.is_some()
        || markers.values.is_some()
        || markers.embedded_resource
}

/// The value may be the metadata, or hold objects that have some.
fn keep_object_meta_of(schema: &mut Schema) -> bool {
    if !is_bare(schema) {
        return keep_object_meta(schema);
    }
    *schema = Schema {
        description: schema.description.take(),
        ..meta::embedded_object_meta()
    };
    true
}

fn override_with<T: Clone>(value: &mut Option<T>, written: Option<&T>) {
    if let Some(written) = written {
        *value = Some(written.clone());
    }
}

fn override_text(text: &mut Option<Arc<str>>, written: Option<&str>) {
    if let Some(written) = written {
        *text = Some(written.into());
    }
}

/// `type = "…"` and `int_or_string` put another type in the place of the Rust type's; what was said about the
/// old one has no meaning for the new one.
fn retype(schema_type: Option<SchemaType>, is_int_or_string: bool, schema: &mut Schema) {
    if is_int_or_string && !schema.int_or_string {
        *schema = Schema {
            description: schema.description.take(),
            ..int_or_string()
        };
    } else if schema_type.is_some() && schema.schema_type != schema_type {
        *schema = Schema {
            schema_type,
            description: schema.description.take(),
            ..Schema::default()
        };
    }
}

/// Bounds on a size, as bounds on what the schema turns out to be.
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

fn constrain(validation: &Validation, schema: &mut Schema, complaints: &mut Vec<Complaint>) {
    if validation.min_size.is_some() || validation.max_size.is_some() {
        return constrain(&sized(validation, schema), schema, complaints);
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
        complaints,
    ) {
        check_whole(numbers, schema, complaints);
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
    if fits(texts.into_iter().flatten(), Subject::Text, schema, complaints) {
        raise(&mut schema.min_length, *min_length);
        lower(&mut schema.max_length, *max_length);
        match_pattern(pattern.as_deref(), schema);
    }
    let lists = [
        named("min_items", min_items.is_some()),
        named("max_items", max_items.is_some()),
    ];
    if fits(lists.into_iter().flatten(), Subject::List, schema, complaints) {
        raise(&mut schema.min_items, *min_items);
        lower(&mut schema.max_items, *max_items);
    }
    let objects = [
        named("min_properties", min_properties.is_some()),
        named("max_properties", max_properties.is_some()),
    ];
    if fits(objects.into_iter().flatten(), Subject::Object, schema, complaints) {
        raise(&mut schema.min_properties, *min_properties);
        lower(&mut schema.max_properties, *max_properties);
    }
    restrict(enumeration, schema, complaints);
    if let Some(format) = format
        && format_suits(format, schema, complaints)
    {
        schema.format = Some(format.as_str().into());
    }
    if let Some(alternatives) = alternatives {
        join_alternatives(alternatives, schema, complaints);
    }
    drop_implied_bounds(schema);
}

/// Puts alternatives beside those that a schema has; it holds one list of each sort, so further ones go under `allOf`.
fn join_alternatives(alternatives: &Schema, schema: &mut Schema, complaints: &mut Vec<Complaint>) {
    let is_taken = !schema.one_of.is_empty() || !schema.any_of.is_empty() || schema.not.is_some();
    if is_taken {
        schema.all_of.push(alternatives.clone());
    } else {
        schema.all_of.extend(alternatives.all_of.iter().cloned());
        schema.any_of.clone_from(&alternatives.any_of);
        schema.one_of.clone_from(&alternatives.one_of);
        schema.not.clone_from(&alternatives.not);
    }
    for breach in check_alternatives(schema) {
        let complaint = Complaint::new(format!(
            "the API server refuses `{}`: {}",
            breach.path, breach.message
        ));
        complaints.push(match breach.help {
            Some(help) => complaint.help(help),
            None => complaint,
        });
    }
}

/// Whether the API server looks at a format here; it warns about one of another type on every apply. What it does not
/// know at all has been told where it is written.
fn format_suits(format: &str, schema: &Schema, complaints: &mut Vec<Complaint>) -> bool {
    let noun = match format_type(format) {
        Some(SchemaType::Integer) if schema.schema_type != Some(SchemaType::Integer) => "whole numbers",
        Some(SchemaType::Number) if schema.schema_type != Some(SchemaType::Number) => "fractions",
        Some(SchemaType::String)
            if schema.schema_type != Some(SchemaType::String) && !schema.int_or_string =>
        {
            "text"
        }
        _ => return true,
    };
    let this = schema.schema_type.map_or("a value of any type", SchemaType::noun);
    complaints.push(Complaint::new(format!(
        "the format `{format}` is about {noun}, and this is {this}"
    )));
    false
}

/// Takes out a bound that the format sets anyway. The API server cannot write `i64::MAX` as a bound and refuses every
/// value where it is one.
fn drop_implied_bounds(schema: &mut Schema) {
    let is_implied = |bound: &Option<Number>, is_positive: bool| {
        bound.as_ref().is_some_and(|bound| {
            !is_in_format(bound, schema)
                && is_integral(bound)
                && (crate::number::float(bound) > 0.0) == is_positive
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

/// Whether constraints of this sort have a meaning here; complains about each that has none.
fn fits<'a>(
    names: impl Iterator<Item = &'a str>,
    subject: Subject,
    schema: &Schema,
    complaints: &mut Vec<Complaint>,
) -> bool {
    let (fits, noun) = match subject {
        Subject::Number => (
            matches!(schema.schema_type, Some(SchemaType::Integer | SchemaType::Number)),
            "numbers",
        ),
        Subject::Text => (
            schema.schema_type == Some(SchemaType::String) || schema.int_or_string,
            "text",
        ),
        Subject::List => (schema.schema_type == Some(SchemaType::Array), "lists"),
        Subject::Object => (schema.schema_type == Some(SchemaType::Object), "maps and structs"),
    };
    if !fits {
        let this = schema.schema_type.map_or("a value of any type", SchemaType::noun);
        complaints.extend(
            names.map(|name| Complaint::new(format!("`{name}` is about {noun}, and this is {this}"))),
        );
    }
    fits
}

fn check_whole<'a>(
    numbers: impl Iterator<Item = (&'a str, &'a Number)>,
    schema: &Schema,
    complaints: &mut Vec<Complaint>,
) {
    if schema.schema_type == Some(SchemaType::Integer) {
        for (name, number) in numbers.filter(|(_, number)| !is_integral(number)) {
            let complaint = Complaint::new(format!("`{name} = {number}` on a whole number"));
            complaints.push(complaint.help("write a whole number"));
        }
    }
}

/// Takes the new bound when it is the tighter one; of two equal ones the exclusive.
fn tighten(
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

/// Two factors have no tighter one in general, so both are kept.
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

fn raise(least: &mut Option<u64>, new: Option<u64>) {
    *least = (*least).max(new);
}

fn lower(most: &mut Option<u64>, new: Option<u64>) {
    *most = match (*most, new) {
        (Some(old), Some(new)) => Some(old.min(new)),
        (old, new) => old.or(new),
    };
}

/// A value that two patterns must match has both; there is no one pattern that says so.
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

fn restrict(allowed: &[Value], schema: &mut Schema, complaints: &mut Vec<Complaint>) {
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
            complaints.push(Complaint::new(format!("`enum` holds a wrong value: {reason}")));
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
        let complaint = Complaint::new("this `enum` and that of the type have no value in common");
        complaints.push(complaint.help(format!("the type allows {}", of_type.join(", "))));
        return;
    }
    schema.enumeration = both;
}

/// Constraints of the type and of the marker can contradict each other even where each alone does not.
fn check_constraints(validation: &Validation, schema: &Schema, complaints: &mut Vec<Complaint>) {
    if let Some(contradiction) = find_contradiction(schema) {
        complaints.push(Complaint::new(contradiction).help("the constraints of the type count too"));
        return;
    }
    for value in &validation.enumeration {
        if schema.enumeration.contains(value)
            && let Err(reason) = fits_constraints(value, schema)
        {
            complaints.push(Complaint::new(format!(
                "`enum` holds a value that is never accepted: {reason}"
            )));
        }
    }
}

fn embed(schema: &mut Schema, complaints: &mut Vec<Complaint>) {
    if schema.schema_type != Some(SchemaType::Object) {
        complaints.push(
            Complaint::new("`embedded_resource` is about objects")
                .help("use it on `RawExtension` or a struct"),
        );
    } else if schema.properties.is_empty() && !schema.preserve_unknown_fields {
        let complaint = Complaint::new("an embedded resource needs fields, or leave to have any");
        complaints.push(complaint.help("add `preserve_unknown_fields`"));
    } else {
        schema.embedded_resource = true;
    }
}

fn apply_inner(
    markers: Option<&Markers>,
    inner: Option<&mut Schema>,
    name: &str,
    wanted: &str,
    complaints: &mut Vec<Complaint>,
) {
    match (markers, inner) {
        (None, _) => {}
        (Some(markers), Some(inner)) => apply(markers, inner, complaints),
        (Some(_), None) => complaints.push(Complaint::new(format!(
            "`{name}` is about {wanted}, and this is none"
        ))),
    }
}

/// The constraints on keys as CEL rules: OpenAPI has no word for them that a CRD may use.
fn key_rules(keys: &Markers, complaints: &mut Vec<Complaint>) -> Vec<Cel> {
    let Validation {
        min_length,
        max_length,
        pattern,
        enumeration,
        ..
    } = &keys.validation;
    let mut rules = Vec::new();
    let mut rule = |condition: String, message: String| {
        let rule = format!("self.all(key, {condition})");
        rules.push(Cel {
            rule,
            message: Some(message),
            origin: keys.origin,
            ..Cel::default()
        });
    };
    if let Some(least) = min_length {
        rule(
            format!("size(key) >= {least}"),
            format!("keys must have at least {least} characters"),
        );
    }
    if let Some(most) = max_length {
        rule(
            format!("size(key) <= {most}"),
            format!("keys must have at most {most} characters"),
        );
    }
    if let Some(pattern) = pattern {
        rule(
            format!("key.matches({})", cel_text(pattern)),
            "keys must match the pattern".to_owned() + " " + &one_line(pattern),
        );
    }
    if !enumeration.is_empty() {
        let names: Vec<_> = enumeration.iter().filter_map(Value::as_str).collect();
        let list: Vec<_> = names.iter().map(|name| cel_text(name)).collect();
        rule(
            format!("key in [{}]", list.join(", ")),
            format!("keys must be one of {}", one_line(&names.join(", "))),
        );
    }
    let said = Markers {
        validation: Validation {
            min_length: *min_length,
            max_length: *max_length,
            pattern: pattern.clone(),
            enumeration: enumeration.clone(),
            ..Validation::default()
        },
        cel: keys.cel.clone(),
        ..Markers::default()
    };
    if *keys != said {
        let complaint = Complaint::new("`keys` can say less than that");
        complaints.push(complaint.help("keys take `min_length`, `max_length`, `pattern`, `enum` and `cel`"));
    }
    for cel in &keys.cel {
        if cel.message_expression.is_some() || cel.optional_old_self.is_some() {
            let complaint = Complaint::new("a rule on keys sees the key only");
            complaints.push(
                complaint
                    .help("write `message` in place of `message_expression`, and compare with no `oldSelf`"),
            );
        }
        // `self` in the rule is the key.
        rules.push(Cel {
            rule: format!("self.all(key, [key].all(self, {}))", cel.rule),
            ..cel.clone()
        });
    }
    rules
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// A text as a CEL literal.
pub(crate) fn cel_text(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('\'', "\\'")
        .replace('\n', "\\n")
        .replace('\r', "\\r");
    format!("'{escaped}'")
}

fn merge_as(topology: &Topology, schema: &mut Schema, complaints: &mut Vec<Complaint>) {
    let Topology {
        list_type,
        list_map_keys,
        map_type,
    } = topology;
    if let Some(list_type) = list_type {
        if schema.schema_type == Some(SchemaType::Array) {
            schema.list_type = Some(*list_type);
            schema.list_map_keys = list_map_keys.clone();
            check_list(*list_type, schema, complaints);
        } else {
            complaints.push(Complaint::new("`list_type` is about lists, and this is none"));
        }
    }
    if let Some(map_type) = map_type {
        if schema.schema_type == Some(SchemaType::Object) {
            schema.map_type = Some(*map_type);
        } else {
            complaints.push(Complaint::new(
                "`map_type` and `struct_type` are about objects, and this is none",
            ));
        }
    }
}

fn check_list(list_type: ListType, schema: &Schema, complaints: &mut Vec<Complaint>) {
    complaints.extend(
        check_list_map(list_type, schema)
            .into_iter()
            .map(|(message, help)| {
                let complaint = Complaint::new(message);
                match help {
                    Some(help) => complaint.help(help),
                    None => complaint,
                }
            }),
    );
}

#[cfg(test)]
mod tests;
