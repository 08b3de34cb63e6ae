//! Compares the parts of a version other than its schema: subresources, selectable fields and
//! printer columns.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::change::Change;
use crate::place::{Place, list, shown, text};

pub(crate) fn compare_subresources(before: &Value, after: &Value, place: &Place) -> Vec<Change> {
    let part = |version: &Value, name: &str| version["subresources"][name].clone();
    let mut changes = Vec::new();
    let field = "subresources.scale";
    match (part(before, "scale"), part(after, "scale")) {
        (Value::Null, Value::Null) => {}
        (Value::Null, _) => changes.push(place.change("scale-subresource-added", field, "new".to_owned())),
        (_, Value::Null) => {
            changes.push(place.change("scale-subresource-removed", field, "removed".to_owned()))
        }
        (before, after) if before != after => {
            changes.push(place.change(
                "scale-subresource-changed",
                field,
                format!("{after} instead of {before}"),
            ));
        }
        _ => {}
    }
    if part(before, "status").is_object() && !part(after, "status").is_object() {
        changes.push(place.change(
            "status-subresource-removed",
            "subresources.status",
            "removed".to_owned(),
        ));
    }
    let paths = |version: &Value| -> BTreeSet<String> {
        list(&version["selectableFields"])
            .into_iter()
            .map(|field| text(&field["jsonPath"]))
            .collect()
    };
    let (old, new) = (paths(before), paths(after));
    for path in old.difference(&new) {
        changes.push(place.change(
            "selectable-field-removed",
            "selectableFields",
            format!("no `{path}`"),
        ));
    }
    for path in new.difference(&old) {
        changes.push(place.change("selectable-field-added", "selectableFields", format!("`{path}`")));
    }
    changes
}

/// Compares the columns shown by `kubectl get`.
pub(crate) fn compare_columns(before: &Value, after: &Value, place: &Place) -> Vec<Change> {
    let columns = |version: &Value| {
        list(&version["additionalPrinterColumns"])
            .into_iter()
            .cloned()
            .collect::<Vec<_>>()
    };
    let (old, new) = (columns(before), columns(after));
    let find =
        |columns: &[Value], name: &Value| columns.iter().find(|column| column["name"] == *name).cloned();
    let mut changes = Vec::new();
    let mut add = |name: &str, column: &Value, message: &str| {
        let field = format!("additionalPrinterColumns[{}]", text(&column["name"]));
        changes.push(place.change(name, &field, message.to_owned()));
    };
    for column in &old {
        match find(&new, &column["name"]) {
            None => add("printer-column-removed", column, "removed"),
            Some(after) if without_description(&after) != without_description(column) => {
                let key = ["jsonPath", "type", "format", "priority"]
                    .into_iter()
                    .find(|key| after[*key] != column[*key])
                    .unwrap_or("jsonPath");
                let message = format!("{key} {} instead of {}", shown(&after[key]), shown(&column[key]));
                add("printer-column-changed", column, &message);
            }
            Some(_) => {}
        }
    }
    for column in &new {
        if find(&old, &column["name"]).is_none() {
            add("printer-column-added", column, "new");
        }
    }
    changes
}

fn without_description(column: &Value) -> Value {
    let mut column = column.clone();
    if let Some(fields) = column.as_object_mut() {
        fields.remove("description");
        fields.retain(|_, value| !value.is_null() && *value != 0);
    }
    column
}
