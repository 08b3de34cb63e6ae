//! Random values that match a schema.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_schema::{Schema, SchemaType, known};
use serde_json::{Map, Number, Value, json};

use super::choices::Choices;
use super::objects::item_identity;
use super::pattern::matching_string;

const TRIES: usize = 50;

/// A generator of values. Callers can override fields whose constraints aren't part of the schema.
#[derive(Clone, Debug, Default)]
pub(super) struct Maker {
    /// Allowed values by path, e.g. `.spec.schedule`.
    pub(super) values: BTreeMap<String, Vec<Value>>,
    /// Paths of optional fields that must always be set.
    pub(super) present: BTreeSet<String>,
}

impl Maker {
    /// Generates a value that respects types, bounds, formats and patterns. It may still be invalid
    /// if alternatives (`oneOf`, `anyOf`) contradict each other, so validate it.
    pub(super) fn value(&self, schema: &Schema, path: &str, choices: &mut Choices) -> Value {
        if let Some(values) = self.values.get(path) {
            return choices.one_of(values).clone();
        }
        // Compare with 9 rather than 0: shrinking goes towards zero, and null isn't the simplest
        // value.
        if schema.nullable && !self.present.contains(path) && choices.below(10) == 9 {
            return Value::Null;
        }
        if !schema.enumeration.is_empty() {
            return choices.one_of(&schema.enumeration).clone();
        }
        match schema.schema_type {
            Some(SchemaType::Boolean) => (choices.below(2) == 1).into(),
            Some(SchemaType::Integer) => integer(schema, choices),
            Some(SchemaType::Number) => number(schema, choices),
            Some(SchemaType::String) => text(schema, choices),
            Some(SchemaType::Array) => self.list(schema, path, choices),
            Some(SchemaType::Object) => self.object(schema, path, choices),
            None if schema.int_or_string => match choices.below(2) {
                0 => integer(schema, choices),
                _ => text(schema, choices),
            },
            None if !alternatives(schema).is_empty() || !schema.properties.is_empty() => {
                self.object(schema, path, choices)
            }
            None => anything(choices),
        }
    }

    fn list(&self, schema: &Schema, path: &str, choices: &mut Choices) -> Value {
        let item = |choices: &mut Choices| match &schema.items {
            Some(inner) => self.value(inner, &format!("{path}[]"), choices),
            None => anything(choices),
        };
        let least = schema.min_items.unwrap_or(0) as usize;
        let most = schema.max_items.map_or(usize::MAX, |most| most as usize);
        let mut items: Vec<Value> = (0..least).map(|_| item(choices)).collect();
        for _ in 0..3.min(most.saturating_sub(least)) {
            match choices.maybe(5, item) {
                Some(item) => items.push(item),
                None => break,
            }
        }
        let mut known = BTreeSet::new();
        items.retain(|item| item_identity(item, schema).is_none_or(|identity| known.insert(identity)));
        Value::from(items)
    }

    fn object(&self, schema: &Schema, path: &str, choices: &mut Choices) -> Value {
        let mut fields = Map::new();
        for (name, property) in &schema.properties {
            let path = format!("{path}.{name}");
            let make = |choices: &mut Choices| self.value(property, &path, choices);
            let value = if schema.required.contains(name) || self.present.contains(&path) {
                Some(make(choices))
            } else {
                choices.maybe(5, make)
            };
            if let Some(value) = value {
                fields.insert(name.to_string(), value);
            }
        }
        if let Some(values) = &schema.additional_properties {
            self.entries(schema, values, path, choices, &mut fields);
        }
        if schema.embedded_resource {
            fields.insert("apiVersion".into(), json!("v1"));
            fields.insert("kind".into(), json!("ConfigMap"));
            fields.insert("metadata".into(), json!({"name": "a"}));
        }
        let mut value = Value::Object(fields);
        for list in alternatives(schema) {
            self.choose(&mut value, &list, schema, path, choices);
        }
        value
    }

    fn entries(
        &self,
        schema: &Schema,
        values: &Schema,
        path: &str,
        choices: &mut Choices,
        fields: &mut Map<String, Value>,
    ) {
        const KEYS: [&str; 4] = ["a", "b", "key", "K-1"];
        let path = format!("{path}{{}}");
        let least = schema.min_properties.unwrap_or(0) as usize;
        let most = schema.max_properties.map_or(usize::MAX, |most| most as usize);
        for at in 0..least {
            let key = KEYS
                .get(at)
                .map_or_else(|| format!("k{at}"), |key| (*key).to_owned());
            fields.insert(key, self.value(values, &path, choices));
        }
        // Map keys must be distinct, so continue with names not used by the loop above.
        for key in KEYS.iter().skip(least).take(most.saturating_sub(least)) {
            if let Some(value) = choices.maybe(3, |choices| self.value(values, &path, choices)) {
                fields.insert((*key).to_owned(), value);
            }
        }
    }

    fn choose(&self, value: &mut Value, list: &[Schema], whole: &Schema, path: &str, choices: &mut Choices) {
        let chosen = choices.one_of(list);
        // Drop fields required only by the other alternatives, since exactly one `oneOf` must
        // match.
        if let Value::Object(fields) = value {
            for other in list {
                fields.retain(|name, _| {
                    !other.required.contains(name.as_str()) || chosen.required.contains(name.as_str())
                });
            }
        }
        self.conform(value, chosen, whole, path, choices);
    }

    fn conform(&self, value: &mut Value, branch: &Schema, whole: &Schema, path: &str, choices: &mut Choices) {
        if !branch.enumeration.is_empty() {
            *value = choices.one_of(&branch.enumeration).clone();
            return;
        }
        let Value::Object(fields) = value else { return };
        for name in &branch.required {
            if let Some(property) = whole.properties.get(name)
                && !fields.contains_key(&**name)
            {
                let made = self.value(property, &format!("{path}.{name}"), choices);
                fields.insert(name.to_string(), made);
            }
        }
        for (name, part) in &branch.properties {
            let inner = whole.properties.get(name);
            if let (Some(field), Some(inner)) = (fields.get_mut(&**name), inner) {
                self.conform(field, part, inner, &format!("{path}.{name}"), choices);
            }
        }
        for list in alternatives(branch) {
            self.choose(value, &list, whole, path, choices);
        }
    }
}

fn alternatives(schema: &Schema) -> Vec<Vec<Schema>> {
    let own = [&schema.one_of, &schema.any_of]
        .into_iter()
        // Skip `IntOrString`, whose `anyOf` of both types is already handled in `value`.
        .filter(|list| !list.is_empty() && !schema.int_or_string)
        .cloned();
    own.chain(schema.all_of.iter().flat_map(alternatives)).collect()
}

fn integer(schema: &Schema, choices: &mut Choices) -> Value {
    let bound = |number: &Option<Number>, other: i64| match number {
        Some(number) => number
            .as_i64()
            .or(number.as_f64().map(|float| float as i64))
            .unwrap_or(other),
        None => other,
    };
    let (least, most) = match schema.format.as_deref() {
        Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        // Kubernetes defines `IntOrString` as an int32.
        _ if schema.int_or_string => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let least = bound(&schema.minimum, least).saturating_add(i64::from(schema.exclusive_minimum));
    let most = bound(&schema.maximum, most).saturating_sub(i64::from(schema.exclusive_maximum));
    let factor = schema
        .multiple_of
        .as_ref()
        .and_then(Number::as_i64)
        .unwrap_or(1)
        .max(1);
    let most = most.max(least);
    let simplest = 0.clamp(least, most);
    let (up, down) = (most.abs_diff(simplest), simplest.abs_diff(least));
    let is_down = down > 0 && (up == 0 || choices.below(4) == 3);
    let distance = choices.mostly_small(if is_down { down } else { up }.saturating_add(1));
    let number = if is_down {
        simplest.saturating_sub_unsigned(distance)
    } else {
        simplest.saturating_add_unsigned(distance)
    };
    let multiple = number / factor * factor;
    let multiple = if multiple < least {
        multiple.saturating_add(factor)
    } else {
        multiple
    };
    // Rounding towards zero may have dropped below a positive minimum.
    Value::from(multiple)
}

fn number(schema: &Schema, choices: &mut Choices) -> Value {
    // Multiples of 1/8 are exact in binary, so conversions don't round.
    const STEP: f64 = 0.125;
    let of = |number: &Option<Number>| number.as_ref().and_then(Number::as_f64);
    let step = of(&schema.multiple_of).unwrap_or(STEP);
    let least = of(&schema.minimum).map(|least| least + if schema.exclusive_minimum { step } else { 0.0 });
    let most = of(&schema.maximum).map(|most| most - if schema.exclusive_maximum { step } else { 0.0 });
    let (from, to) = match (least, most) {
        (Some(from), Some(to)) => (from, to),
        (Some(from), None) => (from, from + 100.0),
        (None, Some(to)) => (to.min(0.0) - 100.0, to),
        (None, None) => (-100.0, 100.0),
    };
    let first = (from / step).ceil();
    let steps = ((to / step).floor() - first).clamp(0.0, 100_000.0) as u64;
    // Shrinking leads to `zero`, the number of steps to zero or to the bound closest to it.
    let zero = (0.0 - first).clamp(0.0, steps as f64) as u64;
    let at = (zero + choices.mostly_small(steps + 1)) % (steps + 1);
    let number = (first + at as f64) * step;
    // Normalize -0.0, which `ceil` returns for e.g. -0.5.
    json!(if number == 0.0 { 0.0 } else { number })
}

fn samples(format: &str) -> &'static [&'static str] {
    match format {
        // The API server rejects an empty string as `byte`, even though it's valid base64.
        "byte" => &["aGk=", "AAECAw=="],
        "date-time" | "datetime" => &["2001-01-01T00:00:00Z", "2024-02-29T23:59:59.123456Z"],
        "date" => &["2001-01-01", "2024-02-29"],
        "duration" => &["5s", "1h30m0s"],
        "ipv4" | "ip" => &["127.0.0.1", "10.0.0.255"],
        "ipv6" => &["::1", "fe80::1"],
        "cidr" => &["10.0.0.0/8", "192.168.1.0/24"],
        "mac" => &["01:23:45:67:89:ab"],
        "uuid" | "uuid4" => &["123e4567-e89b-42d3-a456-426614174000"],
        "uuid3" => &["6fa459ea-ee8a-3ca4-894e-db77e160355e"],
        "uuid5" => &["886313e1-3b8a-5372-9b90-0c9aee199e5d"],
        "uri" => &["https://example.com/a?b=c"],
        "email" => &["somebody@example.com"],
        "hostname" => &["localhost", "a.example.com"],
        "bsonobjectid" => &["507f1f77bcf86cd799439011"],
        "isbn" | "isbn10" => &["0321751043"],
        "isbn13" => &["9780321751041"],
        "creditcard" => &["4111111111111111"],
        "ssn" => &["111-22-3333"],
        "hexcolor" => &["#ffffff"],
        "rgbcolor" => &["rgb(1,2,3)"],
        _ => &[],
    }
}

fn text(schema: &Schema, choices: &mut Choices) -> Value {
    let samples = samples(schema.format.as_deref().unwrap_or_default());
    if !samples.is_empty() {
        return Value::from(*choices.one_of(samples));
    }
    let least = schema.min_length.unwrap_or(0) as usize;
    let most = schema.max_length.map_or(usize::MAX, |most| most as usize);
    let inner = schema.all_of.iter().filter_map(|part| part.pattern.as_deref());
    let pattern = schema.pattern.as_deref().into_iter().chain(inner).next();
    if let Some(pattern) = pattern {
        return Value::from(with_pattern(pattern, least..=most, choices));
    }
    const LETTERS: [char; 9] = ['a', 'b', 'Z', '1', '-', ' ', 'é', '漢', '🦀'];
    let mut text: String = (0..least).map(|_| *choices.one_of(&LETTERS)).collect();
    for _ in 0..6.min(most.saturating_sub(least)) {
        match choices.maybe(7, |choices| *choices.one_of(&LETTERS)) {
            Some(letter) => text.push(letter),
            None => break,
        }
    }
    Value::from(text)
}

fn with_pattern(pattern: &str, length: std::ops::RangeInclusive<usize>, choices: &mut Choices) -> String {
    // Don't sample the pattern of quantities, as it also matches strings that Kubernetes can't
    // parse.
    if pattern.contains("numkMGTPE") {
        return (*choices.one_of(&["1", "500m", "1.5Gi", "-3", "1e3"])).to_owned();
    }
    // kube parses durations as floats, which loses nanoseconds in very long ones.
    if known("kube::core::Duration").is_some_and(|duration| duration.pattern.as_deref() == Some(pattern)) {
        return (*choices.one_of(&["0s", "30s", "1h30m", "1.5h", "250ms", "-10m", "24h"])).to_owned();
    }
    let mut last = String::new();
    for _ in 0..TRIES {
        last = matching_string(pattern, choices).unwrap_or_default();
        if length.contains(&last.chars().count()) {
            break;
        }
    }
    last
}

fn anything(choices: &mut Choices) -> Value {
    let any = [
        json!({}),
        json!({"a": {"b": [1, null]}}),
        json!(1),
        json!("a"),
        json!(true),
        json!([1, "a"]),
    ];
    choices.one_of(&any).clone()
}
