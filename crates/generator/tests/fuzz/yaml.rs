//! When we print a random value as YAML and parse it again, we must get the same value, in YAML 1.2
//! and in YAML 1.1.

use std::sync::LazyLock;

use rbuilder_generator::yaml::to_string;
use regex::Regex;
use serde_json::{Map, Number, Value, json};

use super::random::Random;

const TEXTS: &[&str] = &[
    "",
    " ",
    "\n",
    "\t",
    "a",
    "y",
    "No",
    "on",
    "OFF",
    "true",
    "Null",
    "~",
    "<<",
    "=",
    ".",
    "..",
    "...",
    "---",
    "--- a",
    "-",
    "- a",
    "?",
    "? a",
    ":",
    "a:",
    "a: b",
    "a :b",
    "#",
    "a #b",
    "a#b",
    "1",
    "0",
    "-1",
    "+1",
    "1.0",
    "1.",
    ".5",
    "1e3",
    "0x1F",
    "0o17",
    "017",
    "0b1",
    "1_000",
    "1:30",
    "190:20:30.15",
    ".inf",
    "-.INF",
    ".nan",
    "-.nan",
    "2001-01-01",
    "2001-1-1",
    "2001-02-30",
    "2001-01-01T00:00:00Z",
    "2001-01-01 00:00:00 +1:00",
    "'",
    "\"",
    "a'b",
    "a\"b",
    "\\",
    "a\\nb",
    "&a",
    "*a",
    "!a",
    "!!str",
    "%a",
    "@a",
    "`a",
    "|",
    ">",
    "[",
    "]",
    "{",
    "}",
    ",",
    "a,b",
    "[a]",
    "{a}",
    "\u{feff}",
    "\u{85}",
    "\u{a0}",
    "\u{2028}",
    "\u{fffe}",
    "\u{10ffff}",
    "é",
    "漢字",
    "\r",
    "a\r\nb",
    "a\nb",
    "a\n b",
    " a\nb",
    "a \nb",
    "a\n\nb",
    "\na",
    "a\n",
    "a\n\n",
    "a\tb",
    "\ta",
    "a word and another word and a third one that goes on and on until the line is longer than it may be",
    "two  spaces  between  all  the  words  of  a  line  that  goes  on  and  on  until  it  is  too  long  to  stand",
    "it's a line with a quote: and it goes on and on and on until the line is longer than any line may be # yes",
    "self.all(x, x != 'y') && (has(self.a) || !has(oldSelf.b))",
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "=a",
    "<<a",
];

/// `depth` keeps the value from growing forever.
pub(crate) fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth > 4 { 5 } else { 8 }) {
        0 => random.one_of(&[json!(null), json!(true), json!(false)]).clone(),
        1 => number(random),
        2..5 => Value::String(text(random)),
        5 => (0..random.below(5)).map(|_| value(random, depth + 1)).collect(),
        _ => {
            let count = random.below(6);
            let entries = (0..count).map(|_| (text(random), value(random, depth + 1)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}

fn number(random: &mut Random) -> Value {
    let bits = random.bits();
    match random.below(5) {
        0 => json!(bits),
        1 => json!(bits as i64),
        2 => json!(random.below(1000)),
        // This can be any finite float.
        3 => Number::from_f64(f64::from_bits(bits)).map_or(json!(0), Value::Number),
        _ => json!(random.below(1_000_000) as f64 / 1000.0 - 500.0),
    }
}

fn text(random: &mut Random) -> String {
    match random.below(4) {
        0 => {
            let count = random.below(4);
            (0..count)
                .map(|_| random.text(TEXTS))
                .collect::<Vec<_>>()
                .join(random.text(&["", " ", "\n"]))
        }
        1 => {
            let count = random.below(12);
            (0..count).map(|_| any_char(random)).collect()
        }
        _ => random.text(TEXTS).to_owned(),
    }
}

fn any_char(random: &mut Random) -> char {
    let code = match random.below(4) {
        0 => random.below(0x20),
        1 => random.below(0x11_0000),
        _ => 0x20 + random.below(0x5f),
    };
    u32::try_from(code)
        .ok()
        .and_then(char::from_u32)
        .unwrap_or('\u{fffd}')
}

/// Parsing the output must give the same value.
pub(crate) fn check(value: &Value) {
    let text = to_string(value);
    let read: Value =
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{value}\n{text}"));
    assert!(same(value, &read), "{value}\nis read as\n{read}\n{text}");
    each_text(value, &mut |text| {
        let (as_value, as_key) = (to_string(&json!({ "k": text })), to_string(&json!({ text: 1 })));
        let is_plain = as_value == format!("k: {text}\n") || as_key == format!("{text}: 1\n");
        assert!(
            !is_plain || !is_more_than_text(text),
            "plain, and YAML 1.1 takes it for no text: {text:?}"
        );
    });
}

/// If we parse a manifest and print it, we must get the same text.
pub(crate) fn check_document(text: &str) {
    let body = text
        .strip_prefix("---\n")
        .expect("a document begins with a line of its own");
    for document in body.split("\n---\n") {
        let document = document.trim_end_matches('\n');
        let read: Value = serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(to_string(&read).trim_end_matches('\n'), document);
    }
}

/// `1.0` counts as `1`, because it's printed like that.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

fn each_text(value: &Value, look: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => look(text),
        Value::Array(list) => list.iter().for_each(|item| each_text(item, look)),
        Value::Object(map) => map.iter().for_each(|(key, item)| {
            look(key);
            each_text(item, look);
        }),
        _ => {}
    }
}

/// Returns true if a YAML 1.1 parser sees something other than a string in this plain scalar. The
/// expressions are those of <https://yaml.org/type/>, as PyYAML implements them.
pub(crate) fn is_more_than_text(text: &str) -> bool {
    static TYPES: LazyLock<Regex> = LazyLock::new(|| {
        let types = [
            r"y|Y|n|N|yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
            r"~|null|Null|NULL|",
            r"[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+",
            r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+",
            r"[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?",
            r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
            r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
            concat!(
                r"[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?(?:[Tt]|[ \t]+)[0-9][0-9]?:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?",
                r"(?:[ \t]*(?:Z|[-+][0-9][0-9]?(?::[0-9]{2})?))?"
            ),
            r"<<|=",
        ];
        Regex::new(&format!("^(?:{})$", types.join("|"))).expect("an expression")
    });
    TYPES.is_match(text)
}
