//! Creates a sample of a kind, i.e. an object that its schema accepts.
//!
//! The sample only has required fields, each with the simplest valid value: a default or example
//! from the schema, the first enum value, the number closest to 1, or the shortest matching string.
//! If fields exclude or require each other, the first alternative that the schema accepts is used.
//! CEL rules aren't evaluated, but if one requires any of several fields, the first of these is
//! set.

use std::collections::BTreeSet;
use std::sync::Arc;

use rbuilder_re2::{Choice, Pattern};
use rbuilder_schema::{ListType, Schema, SchemaType, example_of_format, validate, with_bounds_of_parts};
use serde_json::{Map, Number, Value, json};

use crate::words::split_words;

/// Name of sample objects, and prefix of unconstrained strings.
const EXAMPLE: &str = "example";

/// Maximum number of alternatives to try in one place. Nested alternatives would otherwise grow
/// exponentially.
const MOST_TRIES: usize = 64;

/// Maximum number of items, entries or characters to add. Larger samples are unreadable.
const MOST: u64 = 64;

pub(crate) fn sample_value(schema: &Schema, key: &str) -> Value {
    if !schema.all_of.is_empty() {
        return sample_within(&with_bounds_of_parts(schema), key);
    }
    sample_within(schema, key)
}

/// Like [`sample_value`], with the bounds in `allOf` already merged into the schema.
fn sample_within(schema: &Schema, key: &str) -> Value {
    for value in [&schema.default, &schema.example].into_iter().flatten() {
        if !value.is_null() && validate(value, schema).is_ok() && matches_pattern(value, schema) {
            return value.clone();
        }
    }
    if let Some(value) = schema.enumeration.iter().find(|value| !value.is_null()) {
        return value.clone();
    }
    match schema.schema_type {
        _ if schema.int_or_string => int_or_string(schema, key),
        Some(SchemaType::Boolean) => json!(true),
        Some(SchemaType::Integer) => Value::from(whole_number(schema)),
        Some(SchemaType::Number) => number(schema),
        Some(SchemaType::String) => Value::from(string(schema, key)),
        Some(SchemaType::Array) => list(schema, key),
        Some(SchemaType::Object) => object(schema),
        None => json!({}),
    }
}

fn matches_pattern(value: &Value, schema: &Schema) -> bool {
    let (Some(text), Some(pattern)) = (value.as_str(), &schema.pattern) else {
        return true;
    };
    Pattern::parse(pattern).is_ok_and(|pattern| pattern.is_match(text) == Some(true))
}

/// An object with the required fields, plus those of the first alternative that makes it valid.
fn object(schema: &Schema) -> Value {
    let mut fields = Map::new();
    for name in &schema.required {
        add_field(&mut fields, schema, name);
    }
    if schema.embedded_resource {
        for (name, value) in [
            ("apiVersion", json!("v1")),
            ("kind", json!("ConfigMap")),
            ("metadata", json!({ "name": EXAMPLE })),
        ] {
            fields.entry(name).or_insert(value);
        }
    }
    for name in wanted_by_rules(schema, &fields) {
        add_field(&mut fields, schema, &name);
    }
    fill_up(&mut fields, schema);
    let plain = Value::Object(fields);
    if validate(&plain, schema).is_ok() {
        return plain;
    }
    let mut tries = MOST_TRIES;
    let mut candidates = vec![plain.clone()];
    for list in alternatives(schema) {
        candidates = candidates
            .iter()
            .flat_map(|value| list.iter().map(move |branch| (value, branch)))
            .take_while(|_| {
                tries = tries.saturating_sub(1);
                tries > 0
            })
            .map(|(value, branch)| with_branch(value, branch, schema))
            .collect();
    }
    candidates.extend(with_each_field(&plain, schema));
    candidates
        .into_iter()
        .find(|value| validate(value, schema).is_ok())
        .unwrap_or(plain)
}

/// The value with one more optional field, for each of these. Helps with constraints that only say
/// what must not be absent.
fn with_each_field(value: &Value, schema: &Schema) -> Vec<Value> {
    let Value::Object(fields) = value else {
        return Vec::new();
    };
    let absent = schema
        .properties
        .keys()
        .filter(|name| !fields.contains_key(&***name));
    absent
        .take(MOST_TRIES)
        .map(|name| {
            let mut fields = fields.clone();
            add_field(&mut fields, schema, name);
            Value::Object(fields)
        })
        .collect()
}

fn add_field(fields: &mut Map<String, Value>, schema: &Schema, name: &str) {
    if fields.contains_key(name) {
        return;
    }
    let value = match schema.properties.get(name) {
        Some(property) => sample_value(property, name),
        None => match &schema.additional_properties {
            Some(values) => sample_value(values, name),
            None => json!({}),
        },
    };
    fields.insert(name.to_owned(), value);
}

fn fill_up(fields: &mut Map<String, Value>, schema: &Schema) {
    let least = schema.min_properties.unwrap_or(0).min(MOST) as usize;
    for name in schema.properties.keys() {
        if fields.len() < least {
            add_field(fields, schema, name);
        }
    }
    if let Some(values) = &schema.additional_properties {
        for at in 0..least.saturating_sub(fields.len()) {
            fields.insert(numbered("key", at), sample_value(values, "key"));
        }
    }
}

fn numbered(text: &str, at: usize) -> String {
    match at {
        0 => text.to_owned(),
        at => format!("{text}-{}", at + 1),
    }
}

/// Lists of alternatives in a schema, each of which requires a choice.
fn alternatives(schema: &Schema) -> Vec<&[Schema]> {
    let mut lists: Vec<&[Schema]> = [&schema.one_of, &schema.any_of]
        .into_iter()
        .filter(|list| !list.is_empty())
        .map(Vec::as_slice)
        .collect();
    for part in &schema.all_of {
        lists.extend(alternatives(part));
    }
    lists
}

fn with_branch(value: &Value, branch: &Schema, whole: &Schema) -> Value {
    if let Some(value) = branch.enumeration.first() {
        return value.clone();
    }
    let Value::Object(fields) = value else {
        return value.clone();
    };
    let mut fields = fields.clone();
    for name in &branch.required {
        add_field(&mut fields, whole, name);
    }
    for (name, part) in &branch.properties {
        let inner = whole.properties.get(name);
        if let (Some(field), Some(inner)) = (fields.get_mut(&**name), inner) {
            *field = with_branch(field, part, inner);
        }
    }
    let mut value = Value::Object(fields);
    for list in alternatives(branch) {
        if let Some(first) = list.first() {
            value = with_branch(&value, first, whole);
        }
    }
    value
}

/// For each CEL rule that requires any of several fields, the first of these, unless one is set
/// already. Recognizes `has(self.a) || has(self.b)`, and the rule that controller-gen and rbuilder
/// generate for "exactly one of".
fn wanted_by_rules(schema: &Schema, fields: &Map<String, Value>) -> BTreeSet<String> {
    let mut wanted = BTreeSet::new();
    for rule in &schema.validations {
        let asks = ["== 1", ">= 1", "> 0", "||", "!="]
            .iter()
            .any(|sign| rule.rule.contains(sign));
        // A rule like `!has(self.a) || has(self.b)` only requires a field conditionally.
        let is_conditional =
            rule.rule.contains("!has(") || rule.rule.contains('?') || rule.rule.contains("oldSelf");
        let named: Vec<&str> = rule
            .rule
            .split("has(self.")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
            .filter(|name| schema.properties.contains_key(*name))
            .collect();
        let is_met = named
            .iter()
            .any(|name| fields.contains_key(*name) || wanted.contains(*name));
        if asks && !is_conditional && !is_met {
            wanted.extend(named.first().map(|name| (*name).to_owned()));
        }
    }
    wanted
}

fn list(schema: &Schema, key: &str) -> Value {
    // An empty list wouldn't show what an item looks like.
    let least = schema.min_items.unwrap_or(0).clamp(1, MOST) as usize;
    let most = schema.max_items.unwrap_or(MOST) as usize;
    let Some(items) = &schema.items else {
        return json!([]);
    };
    let made: Vec<Value> = (0..least.min(most))
        .map(|at| {
            let mut item = sample_value(items, &crate::words::singular(key));
            if at > 0 {
                tell_apart(&mut item, schema, items, at);
            }
            item
        })
        .collect();
    Value::from(made)
}

/// Makes items distinct by changing the item itself in a set, or its keys in a list of type `map`.
fn tell_apart(item: &mut Value, list: &Schema, items: &Arc<Schema>, at: usize) {
    let other = |schema: &Schema, value: &Value| match value {
        _ if !schema.enumeration.is_empty() => schema.enumeration[at % schema.enumeration.len()].clone(),
        Value::String(text) => Value::from(numbered(text, at)),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Value::from(number.saturating_add(at as i64)),
            None => value.clone(),
        },
        value => value.clone(),
    };
    match list.list_type {
        Some(ListType::Set) => *item = other(items, item),
        Some(ListType::Map) => {
            for key in &list.list_map_keys {
                if let (Some(field), Some(schema)) = (item.get_mut(key), items.properties.get(key.as_str())) {
                    *field = other(schema, field);
                }
            }
        }
        _ => {}
    }
}

fn int_or_string(schema: &Schema, key: &str) -> Value {
    let number = Value::from(whole_number(schema));
    match schema.pattern {
        Some(_) => Value::from(string(schema, key)),
        None => number,
    }
}

/// The integer closest to 1 within the bounds.
fn whole_number(schema: &Schema) -> i64 {
    let bound = |number: &Option<Number>, round: fn(f64) -> f64| {
        let number = number.as_ref()?;
        number
            .as_i64()
            .or(number.as_f64().map(|float| round(float) as i64))
    };
    let least =
        bound(&schema.minimum, f64::ceil).map(|least| least.saturating_add(schema.exclusive_minimum.into()));
    let most =
        bound(&schema.maximum, f64::floor).map(|most| most.saturating_sub(schema.exclusive_maximum.into()));
    let near = 1.max(least.unwrap_or(i64::MIN)).min(most.unwrap_or(i64::MAX));
    match bound(&schema.multiple_of, f64::ceil) {
        Some(step) if step > 1 => {
            let above = near.div_euclid(step).saturating_mul(step);
            if above < near {
                above.saturating_add(step)
            } else {
                above
            }
        }
        _ => near,
    }
}

fn number(schema: &Schema) -> Value {
    let near = whole_number(schema);
    let whole = Value::from(near);
    let of = |number: &Option<Number>| number.as_ref().and_then(Number::as_f64);
    // Check the bounds here as well, because the API server truncates them for integers.
    let is_within = of(&schema.minimum).is_none_or(|least| least <= near as f64)
        && of(&schema.maximum).is_none_or(|most| near as f64 <= most);
    if is_within && validate(&whole, schema).is_ok() {
        return whole;
    }
    match (of(&schema.minimum), of(&schema.maximum)) {
        (Some(least), Some(most)) => json!(least + (most - least) / 2.0),
        (Some(least), None) => json!(least + 0.5),
        (None, Some(most)) => json!(most - 0.5),
        (None, None) => whole,
    }
}

/// A valid string: an example of the format, the words of the field's name, or a match of the
/// pattern.
fn string(schema: &Schema, key: &str) -> String {
    if let Some(example) = schema.format.as_deref().and_then(example_of_format) {
        return example.to_owned();
    }
    let least = schema.min_length.unwrap_or(0).min(MOST) as usize;
    let most = schema.max_length.map_or(usize::MAX, |most| most as usize);
    let patterns: Vec<Pattern> = [schema.pattern.as_deref()]
        .into_iter()
        .chain(schema.all_of.iter().map(|part| part.pattern.as_deref()))
        .flatten()
        .filter_map(|pattern| Pattern::parse(pattern).ok())
        .collect();
    let fits = |text: &str| {
        let length = text.chars().count();
        (least..=most).contains(&length)
            && patterns
                .iter()
                .all(|pattern| pattern.is_match(text) != Some(false))
    };
    let words = split_words(key).join("-");
    let plain = [
        EXAMPLE,
        words.as_str(),
        "example.com",
        "https://example.com",
        "/example",
        "1",
        "1h",
        "a",
    ];
    // Readable text is better than the shortest match.
    let plain = plain.into_iter().find(|text| !text.is_empty() && fits(text));
    if let Some(text) = plain {
        return text.to_owned();
    }
    let shortest = patterns
        .iter()
        .filter_map(|pattern| shortest_match(pattern, &fits))
        .next();
    shortest.unwrap_or_else(|| {
        EXAMPLE
            .chars()
            .cycle()
            .take(least.max(EXAMPLE.len()).min(most))
            .collect()
    })
}

/// A match of the pattern with as few repetitions as possible.
fn shortest_match(pattern: &Pattern, fits: &dyn Fn(&str) -> bool) -> Option<String> {
    for (times, letter) in (0..=MOST as usize).flat_map(|times| [(times, 0), (times, 1)]) {
        // Only enter optional parts at the first few choices; more would just make the text longer.
        let mut into = times;
        let made = pattern.sample(|choice| match choice {
            Choice::Way if into > 0 => {
                into -= 1;
                1
            }
            Choice::Way => 0,
            Choice::Letter(letters) => letter.min(letters.len() - 1),
        });
        if let Some(text) = made.filter(|text| fits(text) && pattern.is_match(text) == Some(true)) {
            return Some(text);
        }
    }
    None
}
