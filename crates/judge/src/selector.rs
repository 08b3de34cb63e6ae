//! Label selectors.

use serde_json::Value;

/// Returns true if a `LabelSelector` matches labels. An empty selector matches everything;
/// expressions with an unknown operator are ignored.
pub fn matches_labels(selector: &Value, labels: &Value) -> bool {
    let mut wanted = selector["matchLabels"].as_object().into_iter().flatten();
    let mut expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    wanted.all(|(name, value)| labels[name] == *value)
        && expressions.all(|expression| is_met(expression, labels))
}

fn is_met(expression: &Value, labels: &Value) -> bool {
    let label = &labels[expression["key"].as_str().unwrap_or_default()];
    let values = expression["values"].as_array();
    let is_listed = values.is_some_and(|values| values.contains(label));
    match expression["operator"].as_str().unwrap_or_default() {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => label.is_string(),
        "DoesNotExist" => label.is_null(),
        _ => true,
    }
}
