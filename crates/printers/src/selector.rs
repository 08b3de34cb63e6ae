//! Labels and selectors as text.

use rbuilder_kubernetes::selector::LabelSelector;
use serde_json::Value;

use crate::view::{items, scalar, text};

/// Returns labels as `a=b,c=d`, or `<none>`.
pub(crate) fn print_labels(labels: &Value) -> String {
    let labels = pairs(labels).map(|(key, value)| format!("{key}={value}"));
    or_none(labels.collect::<Vec<_>>().join(","))
}

pub(crate) fn or_none(text: String) -> String {
    match text.is_empty() {
        true => "<none>".to_owned(),
        false => text,
    }
}

/// Returns a label selector as `a=b,c in (d,e)`. Empty if it selects everything, or if there is none.
/// Returns `None` if it is invalid.
pub(crate) fn print_selector(selector: &Value) -> Option<String> {
    LabelSelector::read(selector).map(|selector| selector.to_string())
}

/// Prints a selector like the method `String` of Go's type.
pub(crate) fn print_go_selector(selector: &Value) -> String {
    let labels: String = pairs(&selector["matchLabels"])
        .map(|(key, value)| format!("{key}: {value},"))
        .collect();
    let expressions: String = items(selector, "/matchExpressions")
        .iter()
        .map(|expression| {
            let (key, operator) = (text(expression, "/key"), text(expression, "/operator"));
            let values: Vec<String> = items(expression, "/values").iter().map(scalar).collect();
            let values = values.join(" ");
            format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

/// Returns the entries of a map in the order of their keys.
pub(crate) fn pairs(map: &Value) -> impl Iterator<Item = (&str, &str)> {
    let mut pairs: Vec<(&str, &str)> = map
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort_unstable();
    pairs.into_iter()
}
