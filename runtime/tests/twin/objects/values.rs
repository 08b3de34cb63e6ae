//! Objects at random, from schemas: mostly right, sometimes spoiled in a few places.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::string::string_regex;
use rbuilder_schema::{ListType, Schema, SchemaType};
use serde_json::{Map, Number, Value, json};

/// What the exceptions say of places, by path.
pub trait Limits {
    /// The values that a place is limited to.
    fn values(&self, path: &str) -> Option<Vec<Value>>;
    /// Whether a field is always there, whatever the schema says.
    fn is_present(&self, path: &str) -> bool;
}

/// A value that mostly fits the schema.
pub fn value(schema: &Schema, path: &str, limits: &dyn Limits) -> BoxedStrategy<Value> {
    let fitting = match limits.values(path) {
        Some(values) => select(values).boxed(),
        None if !schema.enumeration.is_empty() => select(schema.enumeration.clone()).boxed(),
        None => of_type(schema, path, limits),
    };
    if schema.nullable {
        prop_oneof![4 => fitting, 1 => Just(Value::Null)].boxed()
    } else {
        fitting
    }
}

fn of_type(schema: &Schema, path: &str, limits: &dyn Limits) -> BoxedStrategy<Value> {
    match schema.schema_type {
        Some(SchemaType::Boolean) => any::<bool>().prop_map(Value::from).boxed(),
        Some(SchemaType::Integer) => integer(schema),
        Some(SchemaType::Number) => number(schema),
        Some(SchemaType::String) => text(schema),
        Some(SchemaType::Array) => list(schema, path, limits),
        Some(SchemaType::Object) => object(schema, path, limits),
        None if schema.int_or_string => prop_oneof![integer(schema), text(schema)].boxed(),
        None if !alternatives(schema).is_empty() || !schema.properties.is_empty() => {
            object(schema, path, limits)
        }
        None => anything(),
    }
}

fn integer(schema: &Schema) -> BoxedStrategy<Value> {
    let bound = |number: &Option<Number>, other: i64| match number {
        Some(number) => number
            .as_i64()
            .or(number.as_f64().map(|float| float as i64))
            .unwrap_or(other),
        None => other,
    };
    let (least, most) = match schema.format.as_deref() {
        Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        // An IntOrString holds 32 bits.
        None if schema.int_or_string => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let least = bound(&schema.minimum, least) + i64::from(schema.exclusive_minimum);
    let most = bound(&schema.maximum, most) - i64::from(schema.exclusive_maximum);
    let factor = schema.multiple_of.as_ref().and_then(Number::as_i64).unwrap_or(1);
    let near = least.max(-9)..=most.min(999).max(least.max(-9));
    prop_oneof![4 => near, 1 => Just(least), 1 => Just(most), 1 => least..=most]
        .prop_map(move |number| Value::from(number / factor * factor))
        .boxed()
}

/// Eighths, which no format rounds.
fn number(schema: &Schema) -> BoxedStrategy<Value> {
    const STEP: f64 = 0.125;
    let bound =
        |number: &Option<Number>, other: f64| number.as_ref().and_then(Number::as_f64).unwrap_or(other);
    let step = schema
        .multiple_of
        .as_ref()
        .and_then(Number::as_f64)
        .unwrap_or(STEP);
    let least = bound(&schema.minimum, -100.0) + if schema.exclusive_minimum { step } else { 0.0 };
    let most = bound(&schema.maximum, 100.0) - if schema.exclusive_maximum { step } else { 0.0 };
    let steps = ((most - least) / step) as u32;
    (0..=steps)
        .prop_map(move |at| json!(least + f64::from(at) * step))
        .boxed()
}

/// A text of each format that the kinds use.
fn samples(format: &str) -> &'static [&'static str] {
    match format {
        // An empty text is no `byte` to the API server.
        "byte" => &["aGk=", "AAECAw=="],
        "date-time" => &["2001-01-01T00:00:00Z", "2024-02-29T23:59:59.123456Z"],
        "ipv4" => &["127.0.0.1", "10.0.0.255"],
        "ipv6" => &["::1", "fe80::1"],
        "uuid" => &["123e4567-e89b-12d3-a456-426614174000"],
        "uri" => &["https://example.com/a?b=c"],
        "date" => &["2001-01-01"],
        "int-or-string" | "password" => &["a"],
        other => panic!("no samples of the format {other}"),
    }
}

fn text(schema: &Schema) -> BoxedStrategy<Value> {
    let least = schema.min_length.unwrap_or(0) as usize;
    let most = schema.max_length.map_or(least + 6, |most| most as usize);
    if let Some(format) = &schema.format {
        return select(samples(format)).prop_map(Value::from).boxed();
    }
    if let Some(pattern) = &schema.pattern {
        let most = schema.max_length.map_or(usize::MAX, |most| most as usize);
        return matching(pattern)
            .prop_filter("a length", move |text| {
                (least..=most).contains(&text.chars().count())
            })
            .prop_map(Value::from)
            .boxed();
    }
    let letters = &['a', 'b', 'Z', '1', '-', ' ', 'é', '漢', '🦀'][..];
    vec(select(letters), least..=most.min(least + 6))
        .prop_map(|letters| Value::from(String::from_iter(letters)))
        .boxed()
}

/// A text that matches a pattern as the kinds write them: an expression between anchors.
fn matching(pattern: &str) -> BoxedStrategy<String> {
    let samples: &[&str] = match pattern {
        _ if pattern.contains("numkMGTPE") => &["1", "500m", "1.5Gi", "-3", "1e3"],
        r#"^"'\\?$|^\s*#"# => &["\"'", "#", "  # a"],
        "^x-" => &["x-", "x-a"],
        "z$" => &["z", "az"],
        _ if pattern.contains("https") => &["", "https://(a)"],
        _ => {
            let inner = pattern
                .trim_start_matches('^')
                .trim_end_matches('$')
                .replace(r"\d", "[0-9]");
            return string_regex(&inner)
                .unwrap_or_else(|error| panic!("{pattern}: {error}"))
                .boxed();
        }
    };
    select(samples).prop_map(str::to_owned).boxed()
}

fn list(schema: &Schema, path: &str, limits: &dyn Limits) -> BoxedStrategy<Value> {
    let least = schema.min_items.unwrap_or(0) as usize;
    let most = schema
        .max_items
        .map_or(least + 3, |most| (most as usize).min(least + 3));
    let item = match &schema.items {
        Some(inner) => value(inner, &format!("{path}[]"), limits),
        None => anything(),
    };
    let is_set = matches!(schema.list_type, Some(ListType::Set | ListType::Map));
    vec(item, least..=most)
        .prop_map(move |mut items| {
            if is_set {
                items.dedup();
            }
            Value::from(items)
        })
        .boxed()
}

fn object(schema: &Schema, path: &str, limits: &dyn Limits) -> BoxedStrategy<Value> {
    let inner = |name: &str, inner: &Schema| value(inner, &format!("{path}.{name}"), limits);
    let all: Vec<_> = schema
        .properties
        .iter()
        .map(|(name, property)| (Just(name.to_string()), inner(name, property)))
        .collect();
    let names = schema.properties.keys();
    let required: Vec<String> = names
        .filter(|name| schema.required.contains(*name) || limits.is_present(&format!("{path}.{name}")))
        .map(ToString::to_string)
        .collect();
    let more = match &schema.additional_properties {
        Some(values) => {
            let least = schema.min_properties.unwrap_or(0) as usize;
            let most = schema.max_properties.map_or(least + 2, |most| most as usize);
            let values = value(values, &format!("{path}{{}}"), limits);
            btree_map(
                select(&["a", "b", "key", "K-1"][..]),
                values,
                least..=most.min(3).max(least),
            )
            .boxed()
        }
        None => Just(Default::default()).boxed(),
    };
    let lists: Vec<Vec<Schema>> = alternatives(schema);
    let whole = schema.embedded_resource;
    (
        all,
        vec(any::<bool>(), schema.properties.len()),
        more,
        vec(any::<Index>(), lists.len() * 2),
    )
        .prop_map(move |(all, chosen, more, picks)| {
            let all: Map<String, Value> = all.into_iter().collect();
            let mut fields = Map::new();
            for ((name, value), chosen) in all.iter().zip(chosen) {
                if chosen || required.contains(name) {
                    fields.insert(name.clone(), value.clone());
                }
            }
            fields.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
            if whole {
                fields.insert("apiVersion".into(), json!("v1"));
                fields.insert("kind".into(), json!("ConfigMap"));
                fields.insert("metadata".into(), json!({"name": "a"}));
            }
            let mut value = Value::Object(fields);
            for (list, picks) in lists.iter().zip(picks.chunks(2)) {
                choose(&mut value, list, picks, &all);
            }
            value
        })
        .boxed()
}

/// The lists of alternatives of a schema, wherever it has them.
fn alternatives(schema: &Schema) -> Vec<Vec<Schema>> {
    let own = [&schema.one_of, &schema.any_of]
        .into_iter()
        .filter(|list| !list.is_empty())
        .cloned();
    own.chain(schema.all_of.iter().flat_map(alternatives)).collect()
}

/// Makes a value fit one alternative, and not the others.
fn choose(value: &mut Value, list: &[Schema], picks: &[Index], all: &Map<String, Value>) {
    let chosen = &list[picks[0].index(list.len())];
    if let Value::Object(fields) = value {
        for other in list {
            fields.retain(|name, _| {
                !other.required.contains(name.as_str()) || chosen.required.contains(name.as_str())
            });
        }
    }
    conform(value, chosen, picks[1], all);
}

fn conform(value: &mut Value, branch: &Schema, pick: Index, all: &Map<String, Value>) {
    if !branch.enumeration.is_empty() {
        *value = branch.enumeration[pick.index(branch.enumeration.len())].clone();
        return;
    }
    let Value::Object(fields) = value else { return };
    for name in &branch.required {
        if let Some(value) = all.get(&**name) {
            fields.entry(name.to_string()).or_insert_with(|| value.clone());
        }
    }
    for (name, part) in &branch.properties {
        if let Some(field) = fields.get_mut(&**name) {
            conform(field, part, pick, &Map::new());
        }
    }
    for list in alternatives(branch) {
        choose(value, &list, &[pick, pick], all);
    }
}

fn anything() -> BoxedStrategy<Value> {
    select(vec![
        json!(1),
        json!("a"),
        json!(true),
        json!({"a": {"b": [1, null]}}),
        json!([1, "a"]),
        json!({}),
    ])
    .boxed()
}

/// How a value is spoiled in one place.
#[derive(Clone, Debug)]
pub enum Spoil {
    /// What is there goes.
    Remove,
    /// A null stands there.
    Null,
    /// Another value stands there, mostly of another type or at the edge of one.
    Other(Value),
    /// The last item is there twice.
    Repeat,
    /// A field nobody knows.
    Extra,
}

/// Where to spoil a value, and how.
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

/// Spoils a value in the places that the schema lets one judge.
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

/// What may be put in a place so that the outcome can be judged.
#[derive(Clone, Copy, PartialEq)]
enum Judged {
    Everything,
    /// All but texts, which would have to fit a format or a pattern.
    NoText,
    /// Texts, and numbers of 32 bits: an `IntOrString` holds no more, and the schema language has no bound for it.
    IntOrString,
    /// Nothing: an exception holds here.
    Nothing,
    /// Not even that it is absent.
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
            _ if limits.values(path).is_some() => Judged::Nothing,
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

/// The places in a value.
fn collect(
    value: &Value,
    schema: &Schema,
    path: &str,
    at: &str,
    limits: &dyn Limits,
    places: &mut Vec<(String, Judged)>,
) {
    if limits.values(path).is_some() {
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
