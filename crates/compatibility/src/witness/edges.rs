//! Values where two schemas may differ: next to bounds, of each type, inside and outside of
//! enumerations.

use rbuilder_re2::Pattern;
use rbuilder_schema::{Schema, SchemaType};
use serde_json::{Number, Value, json};

use super::make::{Candidate, Maker, tell_apart};
use super::texts::Texts;
use super::texts::{common_texts, samples_of};
use crate::path::KEY;

const LONGEST: u64 = 100_000;

/// Limit for lists and maps.
const MOST_ITEMS: u64 = 2_000;

pub(crate) fn edges(old: &Schema, new: &Schema) -> Vec<Candidate> {
    let mut values: Vec<Value> = old.enumeration.clone();
    values.extend(Maker::simplest(&Texts::default()).random_values(old));
    if old.nullable {
        values.push(Value::Null);
    }
    // An alternative can exclude a single value that is next to none of the bounds.
    let parts = parts(old).into_iter().chain(parts(new));
    values.extend(parts.flat_map(|part| part.enumeration.iter().cloned()));
    match old.schema_type {
        _ if old.int_or_string => {
            values.extend(numbers(old, new));
            values.extend(texts(old, new));
        }
        Some(SchemaType::Boolean) => values.extend([json!(true), json!(false)]),
        Some(SchemaType::Integer | SchemaType::Number) => values.extend(numbers(old, new)),
        Some(SchemaType::String) => values.extend(texts(old, new)),
        Some(SchemaType::Array) => values.extend(lists(old, new)),
        Some(SchemaType::Object) => values.extend(objects(old, new)),
        None => values.extend([
            json!("a"),
            json!(1),
            json!(true),
            json!(1.5),
            json!([]),
            json!({}),
            json!({ "a": 1 }),
        ]),
    }
    let mut unique: Vec<Candidate> = Vec::new();
    for candidate in values.into_iter().map(Candidate::Value) {
        if !unique.contains(&candidate) {
            unique.push(candidate);
        }
    }
    unique
}

/// The validations of the same value in alternatives, at any depth.
fn parts(schema: &Schema) -> Vec<&Schema> {
    let lists = [&schema.all_of, &schema.any_of, &schema.one_of];
    let direct = lists.into_iter().flatten().chain(schema.not.as_deref());
    direct
        .flat_map(|part| std::iter::once(part).chain(parts(part)))
        .collect()
}

/// Both schemas and their alternatives.
fn with_parts<'s>(old: &'s Schema, new: &'s Schema) -> Vec<&'s Schema> {
    let schemas = [old, new].into_iter();
    schemas
        .flat_map(|schema| std::iter::once(schema).chain(parts(schema)))
        .collect()
}

impl Maker<'_> {
    /// The simplest value and a few random ones.
    fn random_values(&mut self, schema: &Schema) -> Vec<Value> {
        let mut values = vec![self.value(schema, 0)];
        values.extend((1..4).map(|seed| Maker::random(seed, &Texts::default()).value(schema, 4)));
        values
    }
}

fn numbers(old: &Schema, new: &Schema) -> Vec<Value> {
    let mut values: Vec<Value> = [0, 1, -1, 2, 3].map(Value::from).into();
    let schemas = with_parts(old, new).into_iter();
    let bounds = schemas.map(|schema| [&schema.minimum, &schema.maximum, &schema.multiple_of]);
    for bound in bounds.flatten().flatten() {
        values.extend(around(bound));
    }
    // Some of these exceed the format `int32`.
    values.extend([
        json!(1_i64 << 31),
        json!(-(1_i64 << 31) - 1),
        json!(1_i64 << 40),
        json!(i64::MAX),
    ]);
    if old.schema_type == Some(SchemaType::Number) {
        // 1e39 exceeds the format `float`.
        values.extend([json!(0.5), json!(1e39)]);
    }
    values
}

fn around(bound: &Number) -> Vec<Value> {
    if let Some(bound) = bound.as_i64() {
        let near = [
            bound,
            bound.saturating_add(1),
            bound.saturating_sub(1),
            bound.saturating_mul(2),
        ];
        return near.map(Value::from).into();
    }
    let bound = bound.as_f64().unwrap_or_default();
    let whole = [bound.floor(), bound.ceil()].map(|whole| json!(whole as i64));
    [json!(bound), json!(bound + 0.5), json!(bound - 0.5)]
        .into_iter()
        .chain(whole)
        .collect()
}

/// Sizes next to any of the bounds, unless they're too large to try.
fn sizes(bounds: impl IntoIterator<Item = Option<u64>>, most: u64) -> Vec<usize> {
    let mut sizes = vec![0, 1, 2];
    for bound in bounds.into_iter().flatten().filter(|bound| *bound <= most) {
        sizes.extend([bound.saturating_sub(1), bound, bound + 1]);
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes.into_iter().map(|size| size as usize).collect()
}

fn texts(old: &Schema, new: &Schema) -> Vec<Value> {
    let mut texts: Vec<String> = common_texts().map(str::to_owned).collect();
    let schemas = with_parts(old, new);
    let patterns = schemas.iter().filter_map(|schema| schema.pattern.as_deref());
    let patterns: Vec<Pattern> = patterns
        .filter_map(|pattern| Pattern::parse(pattern).ok())
        .collect();
    for pattern in &patterns {
        texts.extend((0..4).flat_map(|seed| samples_of(pattern, seed)));
    }
    for format in schemas.iter().filter_map(|schema| schema.format.as_deref()) {
        texts.extend(rbuilder_schema::example_of_format(format).map(str::to_owned));
    }
    let seeds: Vec<String> = std::iter::once("a".to_owned())
        .chain(texts.iter().filter(|text| !text.is_empty()).take(3).cloned())
        .collect();
    let lengths = schemas
        .iter()
        .flat_map(|schema| [schema.min_length, schema.max_length]);
    for size in sizes(lengths, LONGEST) {
        for seed in &seeds {
            texts.push(seed.chars().cycle().take(size).collect());
        }
    }
    texts.into_iter().map(Value::from).collect()
}

fn lists(old: &Schema, new: &Schema) -> Vec<Value> {
    let item = |seed: u64| match &old.items {
        Some(items) if seed == 0 => Maker::simplest(&Texts::default()).value(items, 0),
        Some(items) => Maker::random(seed, &Texts::default()).value(items, 4),
        None => json!({}),
    };
    let first = item(0);
    let mut lists: Vec<Value> = Vec::new();
    for size in sizes(
        [old.min_items, old.max_items, new.min_items, new.max_items],
        MOST_ITEMS,
    ) {
        let mut items = vec![first.clone(); size];
        tell_apart(&mut items, old);
        lists.push(items.into());
    }
    // Duplicates, which are invalid in a set or map.
    lists.push(json!([first, first]));
    for seed in 1..6 {
        let other = item(seed);
        lists.push(json!([other, other]));
        lists.push(Value::from(alike(&first, &other, new)));
    }
    lists
}

/// Two items that are duplicates in a list of type `map`.
fn alike(first: &Value, second: &Value, list: &Schema) -> Vec<Value> {
    let mut second = second.clone();
    for key in &list.list_map_keys {
        if let (Some(value), Some(fields)) = (first.get(key), second.as_object_mut()) {
            fields.insert(key.clone(), value.clone());
        }
    }
    vec![first.clone(), second]
}

fn objects(old: &Schema, new: &Schema) -> Vec<Value> {
    let mut objects = vec![json!({})];
    if let Some(values) = &old.additional_properties {
        let value = Maker::simplest(&Texts::default()).value(values, 0);
        let bounds = [
            old.min_properties,
            old.max_properties,
            new.min_properties,
            new.max_properties,
        ];
        for size in sizes(bounds, MOST_ITEMS) {
            let fields = (0..size).map(|at| (format!("{KEY}{at}"), value.clone()));
            objects.push(Value::Object(fields.collect()));
        }
    }
    // Each field on its own, then all of them.
    let make = |schema: &Schema| Maker::simplest(&Texts::default()).value(schema, 0);
    for (name, property) in &old.properties {
        let mut object = make(old);
        object[&**name] = make(property);
        objects.push(object);
    }
    let all = old
        .properties
        .iter()
        .map(|(name, property)| (name.to_string(), make(property)));
    objects.push(Value::Object(all.collect()));
    objects.extend(parts(new).into_iter().filter_map(|part| singled_out(old, part)));
    if old.embedded_resource || new.embedded_resource {
        objects.push(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "labels": { "a": "b" } } }));
    }
    if old.preserve_unknown_fields {
        objects.push(json!({ "a": 1 }));
    }
    objects
}

/// An object whose fields have the values that an alternative describes. `None` if it describes no
/// fields.
fn singled_out(old: &Schema, part: &Schema) -> Option<Value> {
    let make = |schema: &Schema| Maker::simplest(&Texts::default()).value(schema, 0);
    let Value::Object(mut object) = make(old) else {
        return None;
    };
    for (name, validations) in &part.properties {
        if let Some(property) = old.properties.get(name) {
            let wanted = Schema {
                schema_type: property.schema_type,
                int_or_string: property.int_or_string,
                ..Schema::clone(validations)
            };
            object.insert(name.to_string(), make(&wanted));
        }
    }
    (!part.properties.is_empty()).then_some(Value::Object(object))
}
