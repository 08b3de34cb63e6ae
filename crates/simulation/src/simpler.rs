//! Generates simpler values, for shrinking.

use serde_json::{Map, Value, json};

/// Returns simpler values, simplest first: closer to zero, shorter, or with fewer fields. They
/// never get more complex, so repeated simplification terminates.
pub(crate) fn simpler(value: &Value) -> Vec<Value> {
    match value {
        Value::Null | Value::Bool(false) => Vec::new(),
        Value::Bool(true) => vec![json!(false)],
        Value::Number(number) => match number.as_i64() {
            Some(number) => simpler_numbers(number),
            None => number.as_f64().map_or(Vec::new(), simpler_floats),
        },
        Value::String(text) => simpler_texts(text),
        Value::Array(items) => simpler_lists(items),
        Value::Object(fields) => simpler_objects(fields),
    }
}

fn simpler_numbers(number: i64) -> Vec<Value> {
    let candidates = [0, 1, number / 2, number - number.signum()];
    let mut found: Vec<i64> = Vec::new();
    for candidate in candidates {
        let is_closer = candidate.unsigned_abs() < number.unsigned_abs();
        if is_closer && !found.contains(&candidate) {
            found.push(candidate);
        }
    }
    found.into_iter().map(Value::from).collect()
}

fn simpler_floats(number: f64) -> Vec<Value> {
    let candidates = [0.0, number.trunc()];
    let simpler = candidates.into_iter().filter(|candidate| *candidate != number);
    simpler.map(Value::from).collect()
}

fn simpler_texts(text: &str) -> Vec<Value> {
    let length = text.chars().count();
    let mut lengths = vec![0, 1, length / 2, length.saturating_sub(1)];
    lengths.retain(|shorter| *shorter < length);
    lengths.dedup();
    let start = |count: usize| text.chars().take(count).collect::<String>();
    lengths.into_iter().map(|count| start(count).into()).collect()
}

fn simpler_lists(items: &[Value]) -> Vec<Value> {
    let mut found = Vec::new();
    if items.len() > 1 {
        found.push(json!([]));
        found.push(json!(items[..items.len() / 2]));
    }
    for index in 0..items.len() {
        let mut fewer = items.to_vec();
        fewer.remove(index);
        found.push(fewer.into());
    }
    for (index, item) in items.iter().enumerate() {
        for item in simpler(item) {
            let mut other = items.to_vec();
            other[index] = item;
            found.push(other.into());
        }
    }
    found
}

fn simpler_objects(fields: &Map<String, Value>) -> Vec<Value> {
    let mut found = Vec::new();
    for name in fields.keys() {
        let mut fewer = fields.clone();
        fewer.remove(name);
        found.push(fewer.into());
    }
    for (name, value) in fields {
        for value in simpler(value) {
            let mut other = fields.clone();
            other.insert(name.clone(), value);
            found.push(other.into());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simpler_values_are_smaller_and_shorter() {
        for (value, expected) in [
            (json!(9), json!([0, 1, 4, 8])),
            (json!(-3), json!([0, 1, -1, -2])),
            (json!(1), json!([0])),
            (json!(0), json!([])),
            (json!(2.5), json!([0.0, 2.0])),
            (json!(true), json!([false])),
            (json!("abcdef"), json!(["", "a", "abc", "abcde"])),
            (json!("é"), json!([""])),
            (json!([7]), json!([[], [0], [1], [3], [6]])),
            (
                json!({ "a": true, "b": "" }),
                json!([{ "b": "" }, { "a": true }, { "a": false, "b": "" }]),
            ),
        ] {
            assert_eq!(Value::from(simpler(&value)), expected, "{value}");
        }
    }

    #[test]
    fn simplifying_ends() {
        let mut left = vec![json!({ "a": [1, { "b": -2 }], "c": "xy", "d": 0.5 })];
        let mut count = 0;
        while let Some(value) = left.pop() {
            count += 1;
            assert!(count < 100_000);
            left.extend(simpler(&value).into_iter().take(1));
        }
    }
}
