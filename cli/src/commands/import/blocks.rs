//! Blocks of scaffolded manifests. Edited as text, so that comments and order are kept.

use serde_json::{Map, Value};

pub(super) fn find_block(text: &str, key: &str) -> Option<std::ops::Range<usize>> {
    let start = text.find(key)? + key.len();
    let indent = key.len() - key.trim_start().len();
    let mut end = start;
    for line in text[start..].split_inclusive('\n') {
        if line.len() - line.trim_start_matches(' ').len() <= indent {
            break;
        }
        end += line.len();
    }
    Some(start..end)
}

pub(super) fn print_map(map: &Map<String, Value>, indent: usize) -> String {
    print_indented(&Value::Object(map.clone()), indent + 2)
}

pub(super) fn print_indented(value: &Value, indent: usize) -> String {
    let text = rbuilder_generator::yaml::to_string(value);
    let body = text.strip_prefix("---\n").unwrap_or(&text);
    body.lines()
        .map(|line| format!("{}{line}\n", " ".repeat(indent)))
        .collect()
}
