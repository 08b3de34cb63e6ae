//! Compares the types of scalars, merged objects and errors with those of kubectl, as recorded by
//! `cargo xtask yaml`.
//!
//! Keys that only become equal as texts, such as `1` and `1.0`, aren't recorded: the order of Go's
//! maps decides which value remains, and it is another one in each run.

use rbuilder_yaml::{parse_nodes, parse_values};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Recorded {
    text: String,
    value: Option<Value>,
}

/// Texts that kubectl accepts and that are errors here.
const REFUSED_HERE: &[&str] = &[
    // The parser itself resolves `!!int`, and doesn't know `!!timestamp`.
    "a: !!int 010\n",
    "a: !!int &a 010\n",
    "!!int 1: a\n",
    "a: !!timestamp 2024-01-01\n",
    // It considers these as null.
    "nULL: a\n",
    "nuLL: a\n",
    // Fields may only be repeated in nodes, which report them.
    "a: 1\na: 2\n",
    "0x10: a\n16: b\n",
    "x: &x {a: 1}\nz:\n  a: 0\n  <<: *x\n  a: 2\n",
    "x: &x {a: 1, a: 2}\nz: {<<: *x}\n",
    // YAML requires a space before a comment, and spaces as indentation. kubectl's parser ignores what
    // comes after a directive in the middle of a document.
    "a: \"x\"#y\n",
    "a: [\n\t1,\n\t2\n]\n",
    "a: {\n\tb: 1\n}\n",
    "a: \"x\n\ty\"\n",
    "a: 1\n%YAML 1.2\n",
];

/// Texts that are errors for kubectl and that are read here, because the parser is one of YAML 1.2.
const READ_HERE: &[&str] = &[
    // Tabs between tokens, and in empty lines.
    "\ta: x\n",
    "\n\ta: x\n",
    "  \ta: x\n",
    "a:\n \tb: 1\n",
    "a:\n  \tb: 1\n",
    "a: |\n  \tx\n",
    "-\ta\n",
    "- \ta: 1\n",
    "?\ta\n:\tb\n",
    "\t# c\na: 1\n",
    "a: 1\n\t\nb: 2\n",
    "a: 1\n\t# c\nb: 2\n",
    // Escapes that JSON has as well. kubectl reads them in a text that begins with `{`, as JSON.
    "a: \"\\/\"\n",
    "a: \"\\ud83d\\ude00\"\n",
    "{\"a\": \"\\/\"}\n",
    "{\"a\": \"\\ud83d\\ude00\"}\n",
    // These separate lines in YAML 1.1.
    "a: x\u{85}y\n",
    "a: x\u{2028}y\n",
    "a: !!null x\n",
];

/// An empty scalar with a tag of its own, which kubectl reads as a string.
const NULL_HERE: &str = "a: !b\n";

/// Replaces whole floats by integers. Go's JSON doesn't tell them apart.
fn normalize(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 9e18 => (float as i64).into(),
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
            let is_listed = match (&expected, &found) {
                (Some(_), None) => REFUSED_HERE.contains(&&*text),
                (None, Some(_)) => READ_HERE.contains(&&*text),
                _ => text == NULL_HERE,
            };
            if found != expected && !is_listed {
                wrong.push(format!("{text:?}: expected {expected:?}, found {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
