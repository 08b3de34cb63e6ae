//! Calls a CRD's conversion webhook and validates its response like kube-apiserver.

use std::fmt;
use std::time::Duration;

use rbuilder_judge::go;
use rbuilder_kubernetes::names::{check_label_value, check_qualified_name};
use serde_json::{Map, Value, json};

use super::configuration::address;
use super::reviews::{Call, Question, Reviews};
use crate::failure::Failure;
use crate::kinds::{ResourceId, string_at};

/// Hard-coded in kube-apiserver.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Limit in bytes, for all keys and values together.
const MOST_ANNOTATIONS: usize = 256 * 1024;

#[derive(Debug)]
pub(crate) struct ConversionHook {
    name: String,
    url: String,
    path: String,
    /// Version of the `ConversionReview` to send, or `None` if webhook and server have none in
    /// common.
    review_version: Option<&'static str>,
}

impl ConversionHook {
    pub(crate) fn of_crd(crd: &Value, id: &ResourceId) -> Option<Self> {
        let conversion = &crd["spec"]["conversion"];
        if conversion["strategy"] != "Webhook" {
            return None;
        }
        let webhook = &conversion["webhook"];
        let versions = webhook["conversionReviewVersions"]
            .as_array()
            .into_iter()
            .flatten();
        let mut versions = versions.filter_map(Value::as_str);
        let (url, path) = address(&webhook["clientConfig"]);
        Some(Self {
            name: id.to_string(),
            url,
            path,
            review_version: versions
                .find_map(|version| ["v1", "v1beta1"].into_iter().find(|own| *own == version)),
        })
    }

    /// Converts an object to an API version, e.g. `example.com/v1`.
    pub(crate) fn convert(&self, reviews: &Reviews, object: &Value, wanted: &str) -> Result<Value, Failure> {
        if !reviews.are_enabled() {
            let message = format!(
                "{} has a conversion webhook, and the fake API server knows no operator to call: hand it over with \
                 `server.install_webhooks(…)` or `server.install_conversions(…)`",
                self.name
            );
            return Err(Failure::of_code(500, message));
        }
        let Some(version) = self.review_version else {
            return Err(Failure::new(500, "", "no supported conversion review versions"));
        };
        let answer = reviews.ask(Call {
            key: (self.name.clone(), String::new(), 0),
            url: self.url.clone(),
            path: self.path.clone(),
            timeout: TIMEOUT,
            question: Question::Conversion {
                version,
                request: json!({ "desiredAPIVersion": wanted, "objects": [object] }),
            },
        })?;
        let converted = answer
            .map_err(|why| format!("failed: {why}"))
            .and_then(|response| read_response(response, object, wanted));
        converted.map_err(|why| {
            let message = format!("conversion webhook for {} {why}", kind_of(object));
            Failure::new(500, "", message)
        })
    }
}

/// Formats like Go's `GroupVersionKind`.
struct Kind<'a>(&'a str, &'a str);

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(version, kind) = self;
        write!(f, "{version}, Kind={kind}")
    }
}

fn kind_of(object: &Value) -> Kind<'_> {
    Kind(string_at(object, "/apiVersion"), string_at(object, "/kind"))
}

/// Returns the converted object, with immutable metadata taken from the original.
fn read_response(mut response: Value, original: &Value, wanted: &str) -> Result<Value, String> {
    let result = &response["result"];
    if result["status"] != "Success" {
        return Err(match string_at(result, "/message") {
            "" => format!(
                "failed: response.result.status was '{}', not 'Success'",
                string_at(result, "/status")
            ),
            message => format!("failed: {message}"),
        });
    }
    let objects = response["convertedObjects"].as_array_mut();
    let mut objects = objects.map(std::mem::take).unwrap_or_default();
    if objects.len() != 1 {
        return Err(format!("returned {} objects, expected 1", objects.len()));
    }
    let mut converted = objects.remove(0);
    check_identity(&converted, original, wanted)?;
    converted["metadata"] =
        merge_metadata(&converted, original).map_err(|why| format!("returned invalid metadata: {why}"))?;
    Ok(converted)
}

fn check_identity(converted: &Value, original: &Value, wanted: &str) -> Result<(), String> {
    let found = kind_of(converted);
    if found.0 != wanted {
        return Err(format!(
            "returned invalid object at index 0: invalid groupVersion (expected {wanted}, received {})",
            found.0
        ));
    }
    let kind = string_at(original, "/kind");
    if found.1 != kind {
        return Err(format!(
            "returned invalid object at index 0: invalid kind (expected {kind}, received {})",
            found.1
        ));
    }
    for (name, field) in [("name", "name"), ("namespace", "namespace"), ("UID", "uid")] {
        let pointer = format!("/metadata/{field}");
        let (expected, found) = (string_at(original, &pointer), string_at(converted, &pointer));
        if found != expected {
            return Err(format!(
                "returned invalid object: must have the same {name}: {expected} != {found}"
            ));
        }
    }
    Ok(())
}

/// Returns the original metadata with the converted labels and annotations; conversions may not
/// change anything else in it.
fn merge_metadata(converted: &Value, original: &Value) -> Result<Value, String> {
    let found = match converted.get("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(found)) => found,
        Some(other) => {
            return Err(format!(
                "invalid metadata of type {} in converted object",
                go_type(other)
            ));
        }
    };
    let mut metadata = original["metadata"].as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        let texts = match found.get(field) {
            None | Some(Value::Null) => {
                metadata.remove(field);
                continue;
            }
            Some(Value::Object(texts)) => texts,
            Some(other) => {
                return Err(format!(
                    "invalid metadata.{field} of type {} in converted object",
                    go_type(other)
                ));
            }
        };
        check_texts(field, texts)?;
        // Only validate what the webhook changed.
        if metadata.get(field).and_then(Value::as_object) != Some(texts) {
            check_contents(field, texts)?;
        }
        metadata.insert(field.to_owned(), texts.clone().into());
    }
    Ok(metadata.into())
}

fn check_texts(field: &str, texts: &Map<String, Value>) -> Result<(), String> {
    match texts.iter().find(|(_, value)| !value.is_string()) {
        None => Ok(()),
        Some((key, value)) => Err(format!(
            "metadata.{field}[{key}] must be a string, but is {} in converted object",
            go_type(value)
        )),
    }
}

fn check_contents(field: &str, texts: &Map<String, Value>) -> Result<(), String> {
    let is_labels = field == "labels";
    let path = if is_labels {
        "metadata.labels"
    } else {
        "metadata.annotation"
    };
    let mut errors = Vec::new();
    let mut refuse = |value: &str, reasons: Vec<String>| {
        let shown = go::quote(value);
        let reasons = reasons.into_iter();
        errors.extend(reasons.map(|reason| format!("{path}: Invalid value: {shown}: {reason}")));
    };
    let mut size = 0;
    for (key, value) in texts {
        let value = value.as_str().unwrap_or_default();
        if is_labels {
            refuse(key, check_qualified_name(key));
            refuse(value, check_label_value(value));
        } else {
            refuse(key, check_qualified_name(&key.to_lowercase()));
            size += key.len() + value.len();
        }
    }
    if size > MOST_ANNOTATIONS {
        errors.push(format!(
            "{path}: Too long: may not be more than {MOST_ANNOTATIONS} bytes"
        ));
    }
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
