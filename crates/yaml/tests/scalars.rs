//! Compares the types of scalars with those of kubectl, as recorded by `cargo xtask yaml`.

use rbuilder_yaml::{parse_nodes, parse_values};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Recorded {
    text: String,
    value: Option<Value>,
}

/// Texts that kubectl accepts and that are errors here: the parser itself resolves `!!int`, and
/// considers `nULL` as null.
const REFUSED_HERE: &[&str] = &["a: !!int 010\n", "a: !!int &a 010\n", "nULL: a\n"];

/// Replaces whole floats by integers. Go's JSON doesn't tell them apart.
fn normalize(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 1e15 => (float as i64).into(),
            _ => number.into(),
        },
        Value::Array(items) => items.into_iter().map(normalize).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, normalize(value)));
            Value::Object(fields.collect())
        }
        value => value,
    }
}

#[test]
fn scalars_have_the_types_of_kubectl() {
    let lines = include_str!("scalars.jsonl").lines();
    let mut wrong = Vec::new();
    for line in lines {
        let Recorded { text, value } = serde_json::from_str(line).expect("a line");
        let expected = value.map(normalize);
        let values = parse_values(&text)
            .ok()
            .and_then(|values| values.into_iter().next());
        let nodes = parse_nodes(&text).ok().and_then(|nodes| nodes.into_iter().next());
        for found in [values, nodes.map(|node| node.value())] {
            let found = found.map(normalize);
            if found != expected && !(found.is_none() && REFUSED_HERE.contains(&&*text)) {
                wrong.push(format!("{text:?}: expected {expected:?}, found {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
