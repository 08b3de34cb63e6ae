//! Messages whose JSON is not an object with their fields. Both directions convert between the JSON
//! and the fields of the message, as the table names them.

use rbuilder_kubernetes::time::{ZERO, parse_time, print_micro_time, print_time};
use serde_json::{Map, Value, json};

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Special {
    /// A number or a string, e.g. a port.
    IntOrString,
    /// Any JSON.
    Json,
    MicroTime,
    Quantity,
    SchemaOrArray,
    SchemaOrBool,
    SchemaOrStrings,
    /// A list of strings.
    Strings,
    Time,
}

const WRONG_TIME: &str = "expected a time in the years from 0 to 9999, e.g. \"2026-01-31T12:00:00Z\"";

const SECOND: i128 = 1_000_000_000;

fn time_to_json(seconds: i64, nanos: i64, print: fn(i128) -> Option<String>) -> Result<Value, &'static str> {
    let time = i128::from(seconds) * SECOND + i128::from(nanos);
    if time == ZERO {
        return Ok(Value::Null);
    }
    print(time).map(Value::String).ok_or(WRONG_TIME)
}

impl Special {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "IntOrString" => Special::IntOrString,
            "JSON" => Special::Json,
            "MicroTime" => Special::MicroTime,
            "Quantity" => Special::Quantity,
            "SchemaOrArray" => Special::SchemaOrArray,
            "SchemaOrBool" => Special::SchemaOrBool,
            "SchemaOrStrings" => Special::SchemaOrStrings,
            "Strings" => Special::Strings,
            "Time" => Special::Time,
            _ => return None,
        })
    }

    /// Returns the JSON of a message with these fields.
    pub(crate) fn json_of(self, mut fields: Map<String, Value>) -> Result<Value, &'static str> {
        let mut take = |name: &str| fields.remove(name);
        let number = |value: Option<Value>| value.and_then(|value| value.as_i64()).unwrap_or(0);
        Ok(match self {
            Special::IntOrString => match number(take("type")) {
                0 => take("intVal").unwrap_or_default(),
                1 => take("strVal").unwrap_or_default(),
                _ => return Err("expected the type 0 or 1 of an int-or-string"),
            },
            Special::Json => take("raw").unwrap_or_default(),
            Special::Quantity => match take("string") {
                Some(Value::String(text)) if text.is_empty() => {
                    return Err("expected a quantity, found \"\"");
                }
                Some(Value::String(text)) => Value::String(text),
                _ => "0".into(),
            },
            Special::SchemaOrArray => take("schemas").or_else(|| take("schema")).unwrap_or_default(),
            Special::SchemaOrBool => match take("schema") {
                Some(schema) => schema,
                None => take("allows").unwrap_or_default(),
            },
            Special::SchemaOrStrings => take("property").or_else(|| take("schema")).unwrap_or_default(),
            Special::Strings => take("items").unwrap_or_else(|| json!([])),
            Special::Time => time_to_json(number(take("seconds")), 0, print_time)?,
            Special::MicroTime => {
                // Go drops what is below a microsecond, and accepts any number of nanoseconds.
                let nanos = number(take("nanos")) / 1000 * 1000;
                time_to_json(number(take("seconds")), nanos, print_micro_time)?
            }
        })
    }

    /// Returns the fields of a message with this JSON.
    pub(crate) fn fields_of(self, json: &Value) -> Result<Map<String, Value>, &'static str> {
        let fields = match (self, json) {
            (Special::IntOrString, Value::String(_)) => json!({ "type": 1, "strVal": json }),
            (Special::IntOrString, Value::Number(_)) => json!({ "intVal": json }),
            (Special::IntOrString, _) => return Err("expected a number or a string"),
            (Special::Json, _) => json!({ "raw": json }),
            (Special::Quantity, Value::String(_)) => json!({ "string": json }),
            (Special::Quantity, Value::Number(number)) => json!({ "string": number.to_string() }),
            (Special::Quantity, _) => return Err("expected a quantity"),
            (Special::SchemaOrArray, Value::Array(_)) => json!({ "schemas": json }),
            (Special::SchemaOrBool, Value::Bool(_)) => json!({ "allows": json }),
            (Special::SchemaOrBool, _) => json!({ "allows": true, "schema": json }),
            (Special::SchemaOrStrings, Value::Array(_)) => json!({ "property": json }),
            (Special::SchemaOrArray | Special::SchemaOrStrings, _) => json!({ "schema": json }),
            (Special::Strings, Value::Array(_)) => json!({ "items": json }),
            (Special::Strings, _) => return Err("expected a list of strings"),
            (Special::Time | Special::MicroTime, Value::Null) => json!({}),
            (Special::Time | Special::MicroTime, _) => {
                let time = json.as_str().and_then(parse_time).ok_or(WRONG_TIME)?;
                let (seconds, nanos) = (time.div_euclid(SECOND), time.rem_euclid(SECOND));
                let nanos = if self == Special::Time {
                    0
                } else {
                    nanos / 1000 * 1000
                };
                json!({ "seconds": i64::try_from(seconds).ok(), "nanos": i64::try_from(nanos).ok() })
            }
        };
        match fields {
            Value::Object(fields) => Ok(fields),
            _ => Ok(Map::new()),
        }
    }
}
