//! Descriptors of fields, by which consoles show forms. They are derived from the schema.

use serde_json::{Value, json};

const UI: &str = "urn:alm:descriptor:com.tectonic.ui";

/// Returns a descriptor of each field of `spec` or `status`.
pub(super) fn describe_fields(schema: &Value, part: &str) -> Vec<Value> {
    let fields = schema["properties"][part]["properties"].as_object();
    fields
        .into_iter()
        .flatten()
        .map(|(name, field)| describe(name, field, part))
        .collect()
}

fn describe(name: &str, field: &Value, part: &str) -> Value {
    let mut descriptor = json!({ "path": name, "displayName": split_humps(name) });
    if let Some(text) = field["description"].as_str().filter(|text| !text.is_empty()) {
        descriptor["description"] = json!(text);
    }
    let hints = hints(name, field, part);
    if !hints.is_empty() {
        descriptor["x-descriptors"] = json!(hints);
    }
    descriptor
}

/// Returns what a console makes of a field.
fn hints(name: &str, field: &Value, part: &str) -> Vec<String> {
    let ui = |control: &str| vec![format!("{UI}:{control}")];
    let has = |key: &str| field["properties"].get(key).is_some();
    let is_status = part == "status";
    match field["type"].as_str() {
        Some("array") if is_status && name == "conditions" => {
            vec!["urn:alm:descriptor:io.kubernetes.conditions".to_owned()]
        }
        _ if is_status => Vec::new(),
        Some("integer") if name == "replicas" => ui("podCount"),
        Some("integer" | "number") => ui("number"),
        Some("boolean") => ui("booleanSwitch"),
        Some("string") => match field["enum"].as_array() {
            Some(values) => {
                let values = values.iter().filter_map(Value::as_str);
                values.map(|value| format!("{UI}:select:{value}")).collect()
            }
            None => ui("text"),
        },
        Some("object") if has("limits") && has("requests") => ui("resourceRequirements"),
        _ => Vec::new(),
    }
}

/// Returns a name as words: `containerPort` is `Container Port`, and so is `ContainerPort`. Capitals in a row stay together.
pub(super) fn split_humps(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (at, char) in chars.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| chars.get(at));
        let after = chars.get(at + 1);
        let begins = char.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_numeric()
                    || after.is_some_and(|after| after.is_lowercase())
            });
        if begins && before.is_some_and(|before| *before != ' ') {
            out.push(' ');
        }
        match (at, char) {
            (0, char) => out.extend(char.to_uppercase()),
            (_, '-' | '_') => out.push(' '),
            (_, char) => out.push(*char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words() {
        for (name, expected) in [
            ("containerPort", "Container Port"),
            ("CronJob", "Cron Job"),
            ("HTTPRoute", "HTTP Route"),
            ("podCIDR", "Pod CIDR"),
            ("size", "Size"),
            ("memcached-operator", "Memcached operator"),
        ] {
            assert_eq!(split_humps(name), expected);
        }
    }

    #[test]
    fn fields_have_the_controls_of_their_types() {
        let schema = json!({ "properties": {
            "spec": { "properties": {
                "replicas": { "type": "integer", "description": "Pods." },
                "mode": { "type": "string", "enum": ["A", "B"] },
            } },
            "status": { "properties": { "conditions": { "type": "array" }, "phase": { "type": "string" } } },
        } });
        assert_eq!(
            describe_fields(&schema, "spec"),
            [
                json!({ "path": "mode", "displayName": "Mode", "x-descriptors": [format!("{UI}:select:A"), format!("{UI}:select:B")] }),
                json!({ "path": "replicas", "displayName": "Replicas", "description": "Pods.", "x-descriptors": [format!("{UI}:podCount")] }),
            ]
        );
        assert_eq!(
            describe_fields(&schema, "status"),
            [
                json!({ "path": "conditions", "displayName": "Conditions", "x-descriptors": ["urn:alm:descriptor:io.kubernetes.conditions"] }),
                json!({ "path": "phase", "displayName": "Phase" }),
            ]
        );
    }
}
