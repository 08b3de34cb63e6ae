//! The cells of custom resources, from the printer columns of their CRD.

use rbuilder_kubernetes::go;
use rbuilder_kubernetes::json_path::{self, Step};
use rbuilder_kubernetes::time::parse_time;
use serde_json::{Value, json};

use crate::columns::columns_of;
use crate::view::View;
use crate::{Row, row};

struct Column<'a> {
    path: Vec<Step>,
    ty: &'a str,
}

/// Returns the definitions of the columns, and the rows.
pub(crate) fn print_rows<'a>(columns: &[Value], objects: &'a [Value], now: i128) -> (Value, Vec<Row<'a>>) {
    let default = columns_of("", "");
    let age = [json!({
        "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": default.get(1).map(|column| &column["description"]),
    })];
    let columns = if columns.is_empty() { &age } else { columns };
    let mut definitions: Vec<Value> = default.iter().take(1).cloned().collect();
    let mut parsed = Vec::new();
    for column in columns {
        let text = |name: &str| column[name].as_str().unwrap_or_default();
        // The server drops a column that it cannot parse, and those after it.
        let Ok(path) = json_path::parse(text("jsonPath")) else {
            break;
        };
        let description = match text("description") {
            "" => format!(
                "Custom resource definition column (in JSONPath format): {}",
                text("jsonPath")
            ),
            description => description.to_owned(),
        };
        definitions.push(json!({
            "name": text("name"), "type": text("type"), "format": text("format"), "description": description,
            "priority": column["priority"].as_i64().unwrap_or(0),
        }));
        parsed.push(Column {
            path,
            ty: text("type"),
        });
    }
    let print = |object: &'a Value| {
        let view = View { object, now };
        let name = Value::from(view.text("/metadata/name"));
        let cells = parsed.iter().map(|column| column.print(&view));
        row(std::iter::once(name).chain(cells).collect(), object)
    };
    (Value::Array(definitions), objects.iter().map(print).collect())
}

impl Column<'_> {
    /// Prints the first value. Null if there is none, or if it has another type than the column.
    fn print(&self, view: &View<'_>) -> Value {
        let found = json_path::find(&self.path, view.object);
        let Some(value) = found.ok().and_then(|values| values.first().copied()) else {
            return Value::Null;
        };
        match (self.ty, value) {
            ("string", value) => print_text(value).into(),
            ("integer", Value::Number(number)) => match number.as_i64() {
                Some(whole) => whole.into(),
                None => truncate(number.as_f64().unwrap_or(0.0)).into(),
            },
            ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
            ("date", Value::String(time)) => match &**time {
                "" | "null" => view.since(&Value::Null),
                time if parse_time(time).is_none() => "<invalid>".to_owned(),
                _ => view.since(value),
            }
            .into(),
            _ => Value::Null,
        }
    }
}

/// Converts a float like Go does on x86-64, which has one result for all floats that are too large.
#[allow(clippy::cast_possible_truncation)]
fn truncate(float: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match float.abs() < LIMIT {
        true => float as i64,
        false => i64::MIN,
    }
}

fn print_text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.as_i64().is_none() => go::shortest(number.as_f64().unwrap_or(0.0)),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => escape_html(&value.to_string()),
    }
}

/// Go's JSON is safe in HTML.
fn escape_html(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for sign in json.chars() {
        match sign {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                escaped.push_str(&format!("\\u{:04x}", u32::from(sign)))
            }
            sign => escaped.push(sign),
        }
    }
    escaped
}
