//! If all changes between two random schemas are compatible, each object that the old schema
//! accepts is accepted by the new one, and loses nothing.

use rbuilder_compatibility::{Level, compare};
use rbuilder_judge::{Body, Definition, FieldValidation, Judge};
use serde_json::{Map, Value, json};

/// Sebastiano Vigna's SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn one_of<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())].clone()
    }
}

/// Returns a schema with a few random constraints.
fn schema(random: &mut Random, depth: usize) -> Value {
    let mut schema = match random.below(if depth < 3 { 8 } else { 4 }) {
        0 => json!({ "type": "boolean" }),
        1 => json!({ "type": "integer" }),
        2 | 3 => json!({ "type": "string" }),
        4 => json!({ "type": "array", "items": schema(random, depth + 1) }),
        5 => json!({ "type": "object", "additionalProperties": schema(random, depth + 1) }),
        _ => json!({ "type": "object", "properties": {
            "a": schema(random, depth + 1), "b": schema(random, depth + 1),
        } }),
    };
    for _ in 0..random.below(3) {
        constrain(&mut schema, random);
    }
    schema
}

/// Adds, changes or removes one keyword, somewhere in a schema.
fn constrain(schema: &mut Value, random: &mut Random) {
    let inner = [
        "/items",
        "/additionalProperties",
        "/properties/a",
        "/properties/b",
    ];
    let inner = random.one_of(&inner);
    if random.below(3) > 0
        && let Some(inner) = schema.pointer_mut(inner)
    {
        return constrain(inner, random);
    }
    let size = json!(random.below(5));
    let texts = json!(["a", "ab", "abc", "1"]);
    let (key, value) = match schema["type"].as_str() {
        Some("integer") => match random.below(5) {
            0 => ("enum", json!([random.below(3), 3, random.below(6)])),
            1 => ("multipleOf", json!(1 + random.below(3))),
            2 => ("default", size),
            3 => ("minimum", size),
            _ => ("maximum", size),
        },
        Some("string") => match random.below(7) {
            0 => ("enum", json!([random.one_of(texts.as_array().unwrap()), "b"])),
            1 => (
                "pattern",
                random.one_of(&[json!("^a"), json!("^[a-z]*$"), json!("^[a-z0-9]*$")]),
            ),
            2 => (
                "format",
                random.one_of(&[json!("date"), json!("ipv4"), json!("wish")]),
            ),
            3 => ("minLength", size),
            4 => ("maxLength", size),
            5 => ("default", json!("a")),
            _ => (
                "x-kubernetes-validations",
                json!([{ "rule": random.one_of(&["self != 'a'", "self.size() < 3", "true"]) }]),
            ),
        },
        Some("array") => match random.below(3) {
            0 => ("minItems", size),
            1 => ("maxItems", size),
            _ => (
                "x-kubernetes-list-type",
                random.one_of(&[json!("set"), json!("atomic")]),
            ),
        },
        Some("object") if schema["properties"].is_object() => match random.below(4) {
            0 => ("required", json!([random.one_of(&["a", "b"])])),
            1 => ("x-kubernetes-preserve-unknown-fields", json!(true)),
            2 => ("oneOf", json!([{ "required": ["a"] }, { "required": ["b"] }])),
            _ => (
                "x-kubernetes-validations",
                json!([{ "rule": random.one_of(&["has(self.a)", "!has(self.a) || has(self.b)"]) }]),
            ),
        },
        Some("object") => match random.below(2) {
            0 => ("minProperties", size),
            _ => ("maxProperties", size),
        },
        _ => ("nullable", json!(true)),
    };
    let keywords = schema.as_object_mut().expect("a schema is an object");
    match keywords.contains_key(key) && random.below(2) == 0 {
        true => drop(keywords.remove(key)),
        false => drop(keywords.insert(key.to_owned(), value)),
    }
}

/// Returns a value that may or may not be valid.
fn value(schema: &Value, random: &mut Random) -> Value {
    if random.below(20) == 0 {
        return Value::Null;
    }
    // An unknown field.
    if schema.is_null() {
        return json!(1);
    }
    match schema["type"].as_str() {
        Some("boolean") => json!(random.below(2) == 0),
        Some("integer") => json!(random.below(8)),
        Some("string") => random
            .one_of(&["", "a", "ab", "abc", "abcd", "1", "b", "2001-01-01", "127.0.0.1"])
            .into(),
        Some("array") => (0..random.below(4))
            .map(|_| value(&schema["items"], random))
            .collect(),
        _ => {
            let mut fields = Map::new();
            for name in ["a", "b", "c"] {
                let inner = match &schema["properties"][name] {
                    Value::Null => &schema["additionalProperties"],
                    inner => inner,
                };
                if random.below(3) > 0 {
                    fields.insert(name.to_owned(), value(inner, random));
                }
            }
            Value::Object(fields)
        }
    }
}

fn crd(spec: &Value) -> Value {
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    json!({
        "kind": "CustomResourceDefinition", "metadata": { "name": "cups.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "kind": "Cup", "plural": "cups" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    })
}

fn judge(crd: &Value) -> Judge {
    Judge::new(Definition::of_crd(crd).expect("a CRD").remove(0))
}

/// Returns whether a value contains everything in another one.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(name, part)| whole.get(name).is_some_and(|whole| contains(whole, part))),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        (whole, part) => whole == part,
    }
}

#[test]
fn compatible_changes_keep_all_objects_valid() {
    let (mut compatible, mut judged) = (0, 0);
    for seed in 0..1500 {
        let mut random = Random(seed);
        let before = json!({ "type": "object", "properties": { "a": schema(&mut random, 1), "b": schema(&mut random, 1) } });
        let mut after = before.clone();
        for _ in 0..=random.below(2) {
            constrain(&mut after, &mut random);
        }
        let (old, new) = (crd(&before), crd(&after));
        let changes = compare(std::slice::from_ref(&old), std::slice::from_ref(&new)).expect("comparable");
        if changes.is_empty() || changes.iter().any(|change| change.is_at_least(Level::Risky)) {
            continue;
        }
        compatible += 1;
        let (old, new) = (judge(&old), judge(&new));
        for _ in 0..60 {
            let object = json!({
                "apiVersion": "example.com/v1", "kind": "Cup", "metadata": { "name": "a", "namespace": "default" },
                "spec": value(&before, &mut random),
            });
            let write = |judge: &Judge| {
                judge
                    .create(&Body::from(object.clone()), "default", FieldValidation::Ignore)
                    .result
            };
            let Ok(before_object) = write(&old) else { continue };
            judged += 1;
            let shown = || format!("seed {seed}: {before} to {after}\n{object:#}\n{changes:#?}");
            let after_object =
                write(&new).unwrap_or_else(|failure| panic!("{}\n{}", failure.message(), shown()));
            assert!(
                contains(&after_object, &before_object),
                "{after_object:#}\n{}",
                shown()
            );
        }
    }
    assert!(
        compatible > 100 && judged > 1000,
        "{compatible} pairs, {judged} objects"
    );
}
