//! The values of a chart. values.yaml, its schema and the README are generated from the same table.

use rbuilder_generator::yaml;
use serde_json::{Map, Value, json};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) path: &'static str,
    pub(super) default: Value,
    pub(super) schema: Value,
    /// Description: a noun phrase or a verb, with the unit and the meaning of an empty value.
    pub(super) about: &'static str,
}

impl Setting {
    pub(super) fn new(path: &'static str, default: Value, schema: Value, about: &'static str) -> Setting {
        Setting {
            path,
            default,
            schema,
            about,
        }
    }
}

pub(super) fn flag() -> Value {
    json!({ "type": "boolean" })
}

pub(super) fn string() -> Value {
    json!({ "type": "string" })
}

pub(super) fn strings_by_name() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

pub(super) fn strings() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

/// Schema for a Kubernetes API object, whose validation is left to the API server.
pub(super) fn object() -> Value {
    json!({ "type": "object" })
}

pub(super) fn objects() -> Value {
    json!({ "type": "array", "items": { "type": "object" } })
}

/// Schema for objects with a required string field.
pub(super) fn objects_with(key: &str) -> Value {
    let item = json!({ "type": "object", "required": [key], "properties": { key: { "type": "string" } } });
    json!({ "type": "array", "items": item })
}

pub(super) fn port() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": 65535 })
}

pub(super) fn optional_count() -> Value {
    json!({ "type": ["integer", "null"], "minimum": 0 })
}

/// Prints values.yaml. Settings with the same parent key must be adjacent.
pub(super) fn print_values(settings: &[Setting]) -> String {
    let mut out = String::from("# Default values. README.md has a table of them.\n");
    let mut open: Vec<&str> = Vec::new();
    for setting in settings {
        let mut parts: Vec<&str> = setting.path.split('.').collect();
        let last = parts.pop().unwrap_or_default();
        let common = open.iter().zip(&parts).take_while(|(a, b)| a == b).count();
        open.truncate(common);
        out.push('\n');
        for part in &parts[common..] {
            push_line(&mut out, open.len(), &format!("{part}:"));
            open.push(part);
        }
        // Comments and empty lines around each setting make changes to adjacent settings merge.
        push_comment(&mut out, open.len(), setting.about);
        for line in yaml::to_string(&json!({ last: setting.default })).lines() {
            push_line(&mut out, open.len(), line);
        }
    }
    out
}

fn push_line(out: &mut String, depth: usize, line: &str) {
    if !line.is_empty() {
        out.push_str(&"  ".repeat(depth));
    }
    out.push_str(line);
    out.push('\n');
}

const WIDTH: usize = 100;

fn push_comment(out: &mut String, depth: usize, text: &str) {
    let mut line = String::from("#");
    for word in text.split(' ') {
        if line.len() + 1 + word.len() > WIDTH {
            push_line(out, depth, &line);
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    push_line(out, depth, &line);
}

/// Prints values.schema.json. All objects are closed, so that Helm rejects misspelled names.
pub(super) fn print_schema(settings: &[Setting]) -> String {
    let mut root = closed_object();
    for setting in settings {
        let mut parts: Vec<&str> = setting.path.split('.').collect();
        let last = parts.pop().unwrap_or_default();
        let mut node = &mut root;
        for part in parts {
            node = &mut node["properties"][part];
            if node.is_null() {
                *node = closed_object();
            }
        }
        let mut schema = setting.schema.clone();
        schema["description"] = setting.about.into();
        node["properties"][last] = schema;
    }
    // Helm passes `global` to every subchart.
    root["properties"]["global"] = json!({
        "type": "object",
        "description": "Global values; this chart uses none.",
    });
    // Parent charts often use `enabled` as the condition of a dependency, which Helm passes on too.
    root["properties"]["enabled"] = json!({
        "type": "boolean",
        "description": "Condition of a parent chart; this chart does not use it.",
    });
    root["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    format!("{root:#}\n")
}

fn closed_object() -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": Map::new() })
}

/// Prints the table of values as Markdown. Defaults are taken from values.yaml where possible.
pub(super) fn print_table(settings: &[Setting], values: &Value) -> String {
    let mut out = String::from("| value | description | default |\n|---|---|---|\n");
    for Setting {
        path, default, about, ..
    } in settings
    {
        let default = find_value(values, path).unwrap_or(default);
        out.push_str(&format!(
            "| `{path}` | {} | {} |\n",
            about.replace('|', "\\|"),
            code(&default.to_string().replace('|', "\\|"))
        ));
    }
    out
}

fn find_value<'a>(values: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(values, |value, key| value.get(key))
}

fn code(text: &str) -> String {
    match text.contains('`') {
        true => format!("`` {text} ``"),
        false => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Vec<Setting> {
        vec![
            Setting::new("replicas", json!(1), optional_count(), "Number of replicas."),
            Setting::new("image.repository", json!("a"), string(), "The image."),
            Setting::new("image.tag", json!(""), string(), "The tag, or a|b."),
            Setting::new("a.b.c", json!({ "d": [1] }), object(), "Nested."),
        ]
    }

    #[test]
    fn values_are_nested_with_their_comments() {
        assert_eq!(
            print_values(&settings()),
            "# Default values. README.md has a table of them.\n\n# Number of replicas.\nreplicas: 1\n\nimage:\n  # The \
             image.\n  repository: a\n\n  # The tag, or a|b.\n  tag: \"\"\n\na:\n  b:\n    # Nested.\n    c:\n      d:\n      - 1\n"
        );
    }

    #[test]
    fn schema_is_closed() {
        let schema: Value = serde_json::from_str(&print_schema(&settings())).expect("JSON");
        let image = &schema["properties"]["image"];
        assert_eq!(image["additionalProperties"], false);
        assert_eq!(image["properties"]["tag"]["description"], "The tag, or a|b.");
        assert_eq!(
            schema["properties"]["a"]["properties"]["b"]["properties"]["c"]["type"],
            "object"
        );
        assert_eq!(schema["additionalProperties"], false);
    }

    #[test]
    fn bars_are_escaped_in_the_table() {
        let row = "| `image.tag` | The tag, or a\\|b. | `\"\"` |\n";
        assert!(print_table(&settings(), &Value::Null).contains(row));
    }

    #[test]
    fn table_shows_defaults_of_values_yaml() {
        let values = json!({ "image": { "tag": "`v1`|v2" }, "a": "none", "replicas": null });
        let table = print_table(&settings(), &values);
        for row in [
            "| `image.tag` | The tag, or a\\|b. | `` \"`v1`\\|v2\" `` |\n",
            "| `image.repository` | The image. | `\"a\"` |\n",
            "| `a.b.c` | Nested. | `{\"d\":[1]}` |\n",
            "| `replicas` | Number of replicas. | `null` |\n",
        ] {
            assert!(table.contains(row), "{table}");
        }
    }
}
