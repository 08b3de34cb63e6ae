//! Generates random schemas, and random objects for them. Some objects contain mistakes.

use serde_json::{Map, Value, json};

use super::corpus::{Kind, Write};

/// Number of objects to create per schema, and of updates.
const WRITES: usize = 12;

/// Maximum depth of schemas below `spec`.
const DEPTH: u32 = 3;

const NAMES: [&str; 5] = ["a", "b", "c", "list", "map"];
const TEXTS: [&str; 9] = [
    "",
    "a",
    "ab",
    "abc",
    "x1",
    "10.0.0.1",
    "é🦀",
    "A b",
    "2020-01-01T00:00:00Z",
];
const RULES: [(&str, &[&str]); 4] = [
    ("integer", &["self < 7", "self >= oldSelf", "self != 3"]),
    ("string", &["self != 'ab'", "self == oldSelf", "self.size() < 3"]),
    (
        "object",
        &["has(self.a)", "self == oldSelf", "!has(self.b) || has(self.c)"],
    ),
    ("boolean", &["self", "oldSelf || !self"]),
];

/// SplitMix64 by Sebastiano Vigna.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn one_of<'t, T>(&mut self, list: &'t [T]) -> &'t T {
        &list[self.below(list.len() as u64) as usize]
    }
}

/// Returns the kind for this seed, and writes for it.
pub(crate) fn kind(seed: u64) -> (Kind, Vec<Write>) {
    let random = &mut Random(seed);
    let mut properties = json!({ "spec": object_schema(random, DEPTH) });
    let status = random.once_in(2);
    if status {
        properties["status"] = schema(random, 1);
    }
    let schema = json!({ "type": "object", "properties": properties });
    let mut writes = Vec::new();
    for _ in 0..WRITES {
        let how = if random.once_in(4) { "strict" } else { "create" };
        let new = object(&schema, random);
        writes.push(Write {
            how: how.to_owned(),
            old: None,
            new,
        });
    }
    for _ in 0..WRITES {
        let old = object(&schema, random);
        let mut new = old.clone();
        let how = if status && random.once_in(3) {
            "status"
        } else {
            "update"
        };
        for _ in 0..random.below(3) {
            // The root must stay an object.
            for (name, inner) in [
                ("spec", &schema["properties"]["spec"]),
                ("status", &schema["properties"]["status"]),
            ] {
                if let Some(part) = new.get_mut(name) {
                    change(part, inner, random);
                }
            }
        }
        writes.push(Write {
            how: how.to_owned(),
            old: Some(old),
            new,
        });
    }
    let kind = Kind {
        number: 0,
        schema,
        stored: Value::Null,
        cluster: false,
        status,
        scale: Value::Null,
        selectable: Vec::new(),
    };
    (kind, writes)
}

fn schema(random: &mut Random, depth: u32) -> Value {
    let mut schema = match random.below(if depth == 0 { 5 } else { 10 }) {
        0 => text_schema(random),
        1 => integer_schema(random),
        2 => json!({ "type": "boolean" }),
        3 => json!({ "type": "number", "minimum": -1.5, "multipleOf": 0.5 }),
        4 => json!({ "x-kubernetes-int-or-string": true, "pattern": "^[a-z]+$", "maximum": 9 }),
        5 => list_schema(random, depth),
        6 => map_schema(random, depth),
        7 if random.once_in(2) => json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": { "a": schema(random, depth - 1) } }),
        _ => object_schema(random, depth),
    };
    if random.once_in(8) {
        schema["nullable"] = true.into();
    }
    if random.once_in(9) {
        schema["default"] = value(&schema.clone(), random, u64::MAX);
    }
    add_rule(&mut schema, random);
    schema
}

fn add_rule(schema: &mut Value, random: &mut Random) {
    let rules = RULES.iter().find(|(name, _)| schema["type"] == *name);
    // The server rejects a rule that refers to a field outside of the schema.
    let has_fields = |rule: &str| {
        let fields = rule
            .split("self.")
            .skip(1)
            .filter(|rest| rest.as_bytes().get(1) == Some(&b')'));
        fields
            .into_iter()
            .all(|rest| schema["properties"].get(&rest[..1]).is_some())
    };
    if let Some((_, rules)) = rules.filter(|_| random.once_in(5)) {
        let rule = *random.one_of(rules);
        if !has_fields(rule) {
            return;
        }
        let mut rule = json!({ "rule": rule });
        if random.once_in(2) {
            rule["message"] = "not so".into();
        }
        if random.once_in(4) {
            rule["reason"] =
                (*random.one_of(&["FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]))
                    .into();
        }
        schema["x-kubernetes-validations"] = json!([rule]);
    }
}

fn text_schema(random: &mut Random) -> Value {
    let mut schema = json!({ "type": "string", "maxLength": 20 });
    match random.below(6) {
        0 => schema["enum"] = json!(["a", "ab", "10.0.0.1"]),
        1 => schema["pattern"] = "^[a-z0-9.]*$".into(),
        2 => schema["format"] = (*random.one_of(&["date-time", "ipv4", "byte", "k8s-short-name"])).into(),
        3 => schema["minLength"] = 1.into(),
        4 => schema["anyOf"] = json!([{ "maxLength": 1 }, { "minLength": 3, "pattern": "^a" }]),
        _ => schema["maxLength"] = 2.into(),
    }
    schema
}

fn integer_schema(random: &mut Random) -> Value {
    let mut schema = json!({ "type": "integer" });
    match random.below(5) {
        0 => schema["enum"] = json!([1, 2, 3]),
        1 => schema["minimum"] = 1.into(),
        2 => {
            schema["maximum"] = 5.into();
            schema["exclusiveMaximum"] = true.into();
        }
        3 => schema["oneOf"] = json!([{ "maximum": 3 }, { "multipleOf": 2 }]),
        _ => schema["format"] = "int32".into(),
    }
    schema
}

fn list_schema(random: &mut Random, depth: u32) -> Value {
    let mut schema = json!({ "type": "array", "maxItems": 4 });
    match random.below(4) {
        0 => {
            schema["x-kubernetes-list-type"] = "set".into();
            schema["items"] = json!({ "type": "string", "maxLength": 3 });
        }
        1 => {
            let mut items = object_schema(random, depth - 1);
            items["properties"]["k"] = json!({ "type": "string", "maxLength": 10 });
            items["required"] = json!(["k"]);
            schema["x-kubernetes-list-type"] = "map".into();
            schema["x-kubernetes-list-map-keys"] = json!(["k"]);
            schema["items"] = items;
        }
        _ => schema["items"] = self::schema(random, depth - 1),
    }
    if random.once_in(3) {
        schema["minItems"] = 1.into();
    }
    schema
}

fn map_schema(random: &mut Random, depth: u32) -> Value {
    let mut schema = json!({ "type": "object", "maxProperties": 5, "additionalProperties": self::schema(random, depth - 1) });
    match random.below(3) {
        0 => schema["maxProperties"] = 1.into(),
        1 => schema["minProperties"] = 1.into(),
        _ => {}
    }
    schema
}

fn object_schema(random: &mut Random, depth: u32) -> Value {
    let mut properties = Map::new();
    for name in NAMES {
        if random.once_in(2) || name == "a" {
            properties.insert(name.to_owned(), schema(random, depth.saturating_sub(1)));
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    match random.below(8) {
        0 => schema["required"] = json!(["a"]),
        1 => schema["oneOf"] = json!([{ "required": ["a"] }, { "required": ["b"] }]),
        2 => {
            schema["anyOf"] = json!([{ "required": ["a"], "properties": { "a": { "minimum": 2, "minLength": 2 } } }, { "required": ["b", "c"] }])
        }
        3 => schema["not"] = json!({ "required": ["a", "b"] }),
        4 => schema["allOf"] = json!([{ "minProperties": 1 }, { "maxProperties": 3 }]),
        _ => {}
    }
    add_rule(&mut schema, random);
    schema
}

/// The object may contain mistakes, usually none or one.
fn object(schema: &Value, random: &mut Random) -> Value {
    let boldness = *random.one_of(&[5, 20, 60, u64::MAX]);
    let mut object = json!({ "spec": value(&schema["properties"]["spec"], random, boldness) });
    if !schema["properties"]["status"].is_null() {
        object["status"] = value(&schema["properties"]["status"], random, boldness);
    }
    object
}

/// One in `boldness` parts of the value has a random type.
fn value(schema: &Value, random: &mut Random, boldness: u64) -> Value {
    if random.once_in(boldness) {
        let any = [
            json!(null),
            json!(1),
            json!("a"),
            json!(true),
            json!(1.5),
            json!([1]),
            json!({ "a": 1 }),
        ];
        return random.one_of(&any).clone();
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|_| !random.once_in(boldness)) {
        return random.one_of(allowed).clone();
    }
    match schema["type"].as_str() {
        Some("string") => (*random.one_of(&TEXTS)).into(),
        Some("integer") => (random.below(10) as i64 - 2).into(),
        Some("number") => json!((random.below(10) as f64 - 3.0) / 2.0),
        Some("boolean") => random.once_in(2).into(),
        Some("array") => (0..random.below(4))
            .map(|_| value(&schema["items"], random, boldness))
            .collect(),
        Some("object") => Value::Object(fields(schema, random, boldness)),
        _ if random.once_in(2) => random.below(12).into(),
        _ => (*random.one_of(&TEXTS)).into(),
    }
}

fn fields(schema: &Value, random: &mut Random, boldness: u64) -> Map<String, Value> {
    let mut fields = Map::new();
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            if random.below(3) > 0 {
                fields.insert(name.clone(), value(property, random, boldness));
            }
        }
    }
    if !schema["additionalProperties"].is_null() {
        for key in ["k1", "a.b/c", "é"] {
            if random.once_in(2) {
                fields.insert(
                    key.to_owned(),
                    value(&schema["additionalProperties"], random, boldness),
                );
            }
        }
    }
    if random.once_in(boldness) {
        fields.insert("unknown".to_owned(), json!({ "x": [1, null] }));
    }
    fields
}

fn change(target: &mut Value, schema: &Value, random: &mut Random) {
    let stops = random.once_in(4);
    match target {
        Value::Object(fields) if !fields.is_empty() && !stops => {
            let names: Vec<String> = fields.keys().cloned().collect();
            let name = random.one_of(&names).clone();
            let inner = match &schema["properties"][&name] {
                Value::Null => &schema["additionalProperties"],
                inner => inner,
            };
            if random.once_in(6) {
                fields.remove(&name);
            } else if let Some(field) = fields.get_mut(&name) {
                change(field, inner, random);
            }
        }
        Value::Array(items) if !items.is_empty() && !stops => {
            let index = random.below(items.len() as u64) as usize;
            match random.below(6) {
                0 => drop(items.remove(index)),
                1 => items.reverse(),
                2 => items.push(items[index].clone()),
                _ => change(&mut items[index], &schema["items"], random),
            }
        }
        target => *target = value(schema, random, 10),
    }
}
