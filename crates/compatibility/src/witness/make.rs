//! Objects that a schema is likely to accept: the simplest ones, and random ones.
//!
//! Objects are only candidates, whose validity the caller checks with the judge. Constraints that
//! are hard to satisfy, such as CEL rules, are left to chance.

use rbuilder_cel::Demand;
use rbuilder_schema::{ListType, Schema, SchemaType, cel_name, example_of_format, with_bounds_of_parts};
use serde_json::{Map, Number, Value, json};

use super::random::Random;
use super::texts::{EXAMPLE, Texts, common_texts};
use crate::path::{KEY, Step};

/// Maximum number of items, entries or characters generated to satisfy a minimum.
const MOST: u64 = 1 << 16;

/// Optional fields are omitted below this depth.
const DEEPEST: usize = 8;

/// Everything optional is omitted after this many values.
const LARGEST: usize = 200;

/// What to place at the end of a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Candidate {
    Value(Value),
    /// Omit the field.
    Absent,
}

pub(super) struct Maker<'t> {
    /// `None` generates the simplest values.
    random: Option<Random>,
    /// Interesting values, e.g. a rule's literals.
    pool: &'t [Value],
    /// A rule whose mentioned fields are likely to matter.
    rule: Option<&'t str>,
    /// How many optional fields in 8 are present, if there's no rule.
    share: usize,
    left: usize,
    texts: &'t Texts,
}

/// Keeps objects small.
const SPARSE: usize = 2;

/// Sets most fields, to reach constraints on combinations of them.
const DENSE: usize = 6;

impl<'t> Maker<'t> {
    pub(super) fn simplest(texts: &'t Texts) -> Maker<'t> {
        Maker {
            random: None,
            pool: &[],
            rule: None,
            share: SPARSE,
            left: LARGEST,
            texts,
        }
    }

    pub(super) fn random(seed: u64, texts: &'t Texts) -> Maker<'t> {
        Maker {
            random: Some(Random::new(seed)),
            pool: &[],
            rule: None,
            share: SPARSE,
            left: LARGEST,
            texts,
        }
    }

    /// Objects with most of their optional fields.
    pub(super) fn dense(seed: u64, texts: &'t Texts) -> Maker<'t> {
        Maker {
            share: DENSE,
            ..Maker::random(seed, texts)
        }
    }

    pub(super) fn for_rule(seed: u64, rule: &'t str, pool: &'t [Value], texts: &'t Texts) -> Maker<'t> {
        Maker {
            random: Some(Random::new(seed)),
            pool,
            rule: Some(rule),
            share: SPARSE,
            left: LARGEST,
            texts,
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random.as_mut().map_or(0, |random| random.below(limit))
    }

    /// Returns true with a probability of `share` / 8. Always false for the simplest values.
    fn perhaps(&mut self, share: usize) -> bool {
        self.random.is_some() && self.below(8) < share
    }

    fn may_grow(&self, depth: usize) -> bool {
        depth < DEEPEST && self.left > 0
    }

    pub(super) fn object(
        &mut self,
        api_version: &str,
        kind: &str,
        schema: &Schema,
        path: &[Step],
        candidate: &Candidate,
    ) -> Value {
        let placed = match path {
            [] => self.value(schema, 0),
            path => self.place(schema, path, candidate, 0),
        };
        let mut fields = match placed {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let (name, namespace) = (self.name(), "default");
        fields.insert("apiVersion".to_owned(), api_version.into());
        fields.insert("kind".to_owned(), kind.into());
        fields.insert(
            "metadata".to_owned(),
            json!({ "name": name, "namespace": namespace }),
        );
        Value::Object(fields)
    }

    /// Picks a name mentioned in the rule, if any, as the rule may accept only certain names.
    fn name(&mut self) -> Value {
        let is_mentioned = self.rule.is_some_and(|rule| rule.contains("metadata"));
        let texts: Vec<Value> = match is_mentioned && self.perhaps(4) {
            true => self
                .pool
                .iter()
                .filter(|value| value.is_string())
                .cloned()
                .collect(),
            false => Vec::new(),
        };
        let at = self.below(texts.len());
        texts.get(at).cloned().unwrap_or_else(|| EXAMPLE.into())
    }

    fn place(&mut self, schema: &Schema, path: &[Step], candidate: &Candidate, depth: usize) -> Value {
        let Some((step, rest)) = path.split_first() else {
            return match candidate {
                Candidate::Value(value) => value.clone(),
                Candidate::Absent => Value::Null,
            };
        };
        let mut value = self.around(schema, step, depth);
        let inner = |maker: &mut Self, schema: Option<&Schema>| match schema {
            Some(schema) => maker.place(schema, rest, candidate, depth + 1),
            None => maker.place(&Schema::default(), rest, candidate, depth + 1),
        };
        match (step, &mut value) {
            (Step::Field(name), Value::Object(fields))
                if rest.is_empty() && *candidate == Candidate::Absent =>
            {
                fields.remove(name);
            }
            (Step::Field(name), Value::Object(fields)) => {
                let known = schema.properties.get(name.as_str());
                let known = known.or(schema.additional_properties.as_ref());
                fields.insert(name.clone(), inner(self, known.map(AsRef::as_ref)));
                // Adding the field may have exceeded `maxProperties`.
                make_room(fields, schema, name);
            }
            (Step::Values, Value::Object(fields)) => {
                fields.insert(
                    KEY.to_owned(),
                    inner(self, schema.additional_properties.as_deref()),
                );
            }
            (Step::Items, Value::Array(items)) => {
                let item = inner(self, schema.items.as_deref());
                match items.first_mut() {
                    Some(first) => *first = item,
                    None => items.push(item),
                }
            }
            _ => {}
        }
        value
    }

    /// Creates the list or object that contains the step.
    fn around(&mut self, schema: &Schema, step: &Step, depth: usize) -> Value {
        match step {
            Step::Items => self.list(schema, depth),
            Step::Field(_) | Step::Values => self.fields(schema, depth),
        }
    }

    pub(super) fn value(&mut self, schema: &Schema, depth: usize) -> Value {
        self.left = self.left.saturating_sub(1);
        if schema.nullable && self.perhaps(1) {
            return Value::Null;
        }
        // Merge the requirements of `allOf` parts into the schema, so that one value satisfies them
        // all.
        if !schema.all_of.is_empty() {
            let mut whole = with_bounds_of_parts(schema);
            whole.all_of.clear();
            whole
                .one_of
                .extend(schema.all_of.iter().flat_map(|part| part.one_of.iter().cloned()));
            whole
                .any_of
                .extend(schema.all_of.iter().flat_map(|part| part.any_of.iter().cloned()));
            let patterns = schema.all_of.iter().filter_map(|part| part.pattern.clone());
            whole.pattern = whole.pattern.or(patterns.last());
            return self.value(&whole, depth);
        }
        if let Some(default) = schema.default.as_ref().filter(|default| !default.is_null())
            && !self.perhaps(6)
        {
            return default.clone();
        }
        if !schema.enumeration.is_empty() {
            let at = self.below(schema.enumeration.len());
            return schema.enumeration[at].clone();
        }
        match schema.schema_type {
            _ if schema.int_or_string => match self.perhaps(4) || schema.pattern.is_some() {
                true => self.text(schema),
                false => self.integer(schema),
            },
            Some(SchemaType::Boolean) => (self.below(2) == 0).into(),
            Some(SchemaType::Integer) => self.integer(schema),
            Some(SchemaType::Number) => self.number(schema),
            Some(SchemaType::String) => self.text(schema),
            Some(SchemaType::Array) => self.list(schema, depth),
            Some(SchemaType::Object) => self.fields(schema, depth),
            None => self.anything(schema, depth),
        }
    }

    fn anything(&mut self, schema: &Schema, depth: usize) -> Value {
        let any = [
            json!({}),
            json!(1),
            json!("a"),
            json!(true),
            json!([]),
            json!({ "a": 1 }),
        ];
        match schema.properties.is_empty() {
            true => any[self.below(any.len())].clone(),
            false => self.fields(schema, depth),
        }
    }

    fn fields(&mut self, schema: &Schema, depth: usize) -> Value {
        let mut fields = Map::new();
        for (name, property) in &schema.properties {
            let share = match self.rule {
                Some(rule) if rule.contains(&**name) => DENSE,
                Some(_) => 1,
                None => self.share,
            };
            let is_wanted = self.may_grow(depth) && self.perhaps(share);
            if schema.required.contains(name) || is_wanted {
                fields.insert(name.to_string(), self.value(property, depth + 1));
            }
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
        self.fill_up(&mut fields, schema, depth);
        self.choose(&mut fields, schema, schema, depth);
        let mut value = Value::Object(fields);
        self.meet_demands(&mut value, schema, depth);
        value
    }

    /// Sets the constants that the rules of an object demand, all of them together: chance would
    /// rarely find two.
    fn meet_demands(&mut self, value: &mut Value, schema: &Schema, depth: usize) {
        for rule in &schema.validations {
            for demand in self.texts.demands(&rule.rule).iter() {
                // Rarely keep other values, because a rule may have an alternative.
                if self.random.is_none() || self.perhaps(7) {
                    self.meet(value, schema, &demand.path, demand, depth);
                }
            }
        }
    }

    fn meet(&mut self, value: &mut Value, schema: &Schema, path: &[String], demand: &Demand, depth: usize) {
        let Some((name, rest)) = path.split_first() else {
            *value = demand.value.clone();
            return;
        };
        let is_named = |wire: &str| cel_name(wire).as_deref() == Some(name);
        let found = schema.properties.iter().find(|(wire, _)| is_named(wire));
        let (Some((wire, property)), Value::Object(fields)) = (found, value) else {
            return;
        };
        if !fields.contains_key(&**wire) {
            if demand.is_optional {
                return;
            }
            fields.insert(wire.to_string(), self.value(property, depth + 1));
        }
        if let Some(field) = fields.get_mut(&**wire) {
            self.meet(field, property, rest, demand, depth + 1);
        }
    }

    fn fill_up(&mut self, fields: &mut Map<String, Value>, schema: &Schema, depth: usize) {
        let least = schema.min_properties.unwrap_or_default().min(MOST) as usize;
        for (name, property) in &schema.properties {
            if fields.len() < least && !fields.contains_key(&**name) {
                fields.insert(name.to_string(), self.value(property, depth + 1));
            }
        }
        if let Some(values) = &schema.additional_properties {
            let is_wanted = self.may_grow(depth) && self.perhaps(4);
            let more = usize::from(is_wanted) * (1 + self.below(3));
            for at in 0..least.saturating_sub(fields.len()).max(more) {
                let key = if at == 0 {
                    KEY.to_owned()
                } else {
                    format!("{KEY}{at}")
                };
                fields.insert(key, self.value(values, depth + 1));
            }
        }
    }

    /// Adds fields required by one of the alternatives, and removes those required only by others.
    fn choose(&mut self, fields: &mut Map<String, Value>, branch: &Schema, whole: &Schema, depth: usize) {
        for list in [&branch.one_of, &branch.any_of] {
            let at = self.below(list.len());
            let Some(chosen) = list.get(at) else { continue };
            for other in list {
                fields.retain(|name, _| {
                    let is_fixed =
                        whole.required.contains(name.as_str()) || chosen.required.contains(name.as_str());
                    is_fixed || !other.required.contains(name.as_str())
                });
            }
            for name in &chosen.required {
                if let Some(property) = whole.properties.get(name)
                    && !fields.contains_key(&**name)
                {
                    fields.insert(name.to_string(), self.value(property, depth + 1));
                }
            }
            for (name, part) in &chosen.properties {
                if let Some(value) = part.enumeration.first() {
                    fields.insert(name.to_string(), value.clone());
                }
            }
            self.choose(fields, chosen, whole, depth);
        }
    }

    fn list(&mut self, schema: &Schema, depth: usize) -> Value {
        let Some(inner) = &schema.items else {
            return json!([]);
        };
        let least = schema.min_items.unwrap_or_default().min(MOST) as usize;
        let most = schema.max_items.map_or(usize::MAX, |most| most as usize);
        let wanted = match self.random {
            Some(_) if self.may_grow(depth) => least.max(self.below(4)),
            _ => least.max(1),
        };
        let mut items: Vec<Value> = (0..wanted.min(most))
            .map(|_| self.value(inner, depth + 1))
            .collect();
        tell_apart(&mut items, schema);
        Value::Array(items)
    }

    fn pooled(&mut self, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        if self.pool.is_empty() || !self.perhaps(5) {
            return None;
        }
        let values: Vec<Value> = self.pool.iter().filter(|value| fits(value)).cloned().collect();
        let at = self.below(values.len());
        values.get(at).cloned()
    }

    fn integer(&mut self, schema: &Schema) -> Value {
        if let Some(value) = self.pooled(|value| value.is_i64()) {
            return value;
        }
        let bound = |number: &Option<Number>, round: fn(f64) -> f64| {
            let number = number.as_ref()?;
            number
                .as_i64()
                .or(number.as_f64().map(|float| round(float) as i64))
        };
        let least = bound(&schema.minimum, f64::ceil)
            .map(|least| least.saturating_add(schema.exclusive_minimum.into()));
        let most = bound(&schema.maximum, f64::floor)
            .map(|most| most.saturating_sub(schema.exclusive_maximum.into()));
        let near = match self.random {
            None => 1,
            Some(_) => [0, 1, 2, 3, 7, 10, 100, 1000, -1, 65536][self.below(10)],
        };
        let near = near.max(least.unwrap_or(i64::MIN)).min(most.unwrap_or(i64::MAX));
        let step = bound(&schema.multiple_of, f64::ceil).unwrap_or(1).max(1);
        let below = near.div_euclid(step).saturating_mul(step);
        let fits = below >= least.unwrap_or(i64::MIN);
        (if fits { below } else { below.saturating_add(step) }).into()
    }

    fn number(&mut self, schema: &Schema) -> Value {
        if let Some(value) = self.pooled(Value::is_number) {
            return value;
        }
        let of = |number: &Option<Number>| number.as_ref().and_then(Number::as_f64);
        match (of(&schema.minimum), of(&schema.maximum)) {
            (Some(least), Some(most)) => json!(least + (most - least) / 2.0),
            (Some(least), None) => json!(least + 0.5),
            (None, Some(most)) => json!(most - 0.5),
            (None, None) => json!([1.5, 0.0, 100.25, -2.0][self.below(4)]),
        }
    }

    fn text(&mut self, schema: &Schema) -> Value {
        if let Some(value) = self.pooled(Value::is_string) {
            return value;
        }
        if let Some(example) = schema.format.as_deref().and_then(example_of_format) {
            return example.into();
        }
        let least = schema.min_length.unwrap_or_default().min(MOST) as usize;
        let most = schema.max_length.map_or(usize::MAX, |most| most as usize);
        if let Some(pattern) = &schema.pattern {
            let seed = self.below(1000);
            if let Some(texts) = self.texts.of_pattern(pattern, seed) {
                let fits = |text: &&String| (least..=most).contains(&text.chars().count());
                let fitting: Vec<&String> = texts.iter().filter(fits).collect();
                let at = self.below(fitting.len());
                return fitting
                    .get(at)
                    .map_or_else(|| "".into(), |text| text.as_str().into());
            }
        }
        let text = match self.random {
            None => EXAMPLE,
            Some(_) => {
                let texts: Vec<&str> = common_texts().collect();
                texts[self.below(texts.len())]
            }
        };
        let length = text.chars().count().max(least).min(most);
        text.chars()
            .chain(EXAMPLE.chars().cycle())
            .take(length)
            .collect::<String>()
            .into()
    }
}

/// Removes optional fields other than `kept` until `maxProperties` is met, e.g. in a union.
fn make_room(fields: &mut Map<String, Value>, schema: &Schema, kept: &str) {
    let most = schema.max_properties.map_or(usize::MAX, |most| most as usize);
    let mut excess = fields.len().saturating_sub(most);
    fields.retain(|name, _| {
        let is_removed = excess > 0 && name != kept && !schema.required.contains(name.as_str());
        excess -= usize::from(is_removed);
        !is_removed
    });
}

/// Makes items of a set unique, or their keys in a list of type `map`.
pub(super) fn tell_apart(items: &mut [Value], list: &Schema) {
    let Some(inner) = &list.items else { return };
    for (at, item) in items.iter_mut().enumerate().skip(1) {
        match list.list_type {
            Some(ListType::Set) => number(item, inner, at),
            Some(ListType::Map) => {
                for key in &list.list_map_keys {
                    if let (Some(value), Some(schema)) =
                        (item.get_mut(key), inner.properties.get(key.as_str()))
                    {
                        number(value, schema, at);
                    }
                }
            }
            _ => {}
        }
    }
}

fn number(value: &mut Value, schema: &Schema, at: usize) {
    let other = match value {
        _ if !schema.enumeration.is_empty() => schema.enumeration[at % schema.enumeration.len()].clone(),
        Value::String(text) => format!("{text}{at}").into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.saturating_add(at as i64).into(),
            None => return,
        },
        _ => return,
    };
    *value = other;
}
