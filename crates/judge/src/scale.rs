//! The field paths of the `scale` subresource.

use serde_json::Value;

use crate::error::FieldError;
use crate::go;
use crate::path::Path;

/// `subresources.scale` of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Path of the desired number of replicas, e.g. `.spec.replicas`.
    pub spec_replicas: String,
    /// Path of the actual number of replicas.
    pub status_replicas: String,
    /// Path of the label selector.
    pub label_selector: Option<String>,
}

impl Scale {
    pub(crate) fn check_spec(&self, object: &Value) -> Option<FieldError> {
        check_replicas(object, &self.spec_replicas)
    }

    pub(crate) fn check_status(&self, object: &Value) -> Vec<FieldError> {
        let mut errors: Vec<FieldError> = check_replicas(object, &self.status_replicas)
            .into_iter()
            .collect();
        if let Some(path) = &self.label_selector
            && let Err(reason) = nested(object, path, "string", Value::is_string)
        {
            errors.push(FieldError::invalid(
                &Path::root().child(path),
                &"".into(),
                &reason,
            ));
        }
        errors
    }
}

fn check_replicas(object: &Value, path: &str) -> Option<FieldError> {
    let field = Path::root().child(path);
    let is_integer = |value: &Value| value.as_i64().is_some();
    let replicas = match nested(object, path, "int64", is_integer) {
        Ok(value) => value.and_then(Value::as_i64).unwrap_or_default(),
        Err(reason) => return Some(FieldError::invalid(&field, &0.into(), &reason)),
    };
    let reason = match replicas {
        ..0 => "should be a non-negative integer".to_owned(),
        _ if replicas > i64::from(i32::MAX) => format!("should be less than or equal to {}", i32::MAX),
        _ => return None,
    };
    Some(FieldError::invalid(&field, &replicas.into(), &reason))
}

/// Looks up the value at a path. The error is that of `unstructured.NestedInt64`, for a non-object
/// parent or a value of the wrong type.
fn nested<'v>(
    object: &'v Value,
    path: &str,
    wanted: &str,
    fits: impl Fn(&Value) -> bool,
) -> Result<Option<&'v Value>, String> {
    let names: Vec<&str> = path.strip_prefix('.').unwrap_or(path).split('.').collect();
    let refuse = |depth: usize, value: &Value, wanted: &str| {
        let (path, shown, found) = (names[..depth].join("."), go::plain(value), go::type_name(value));
        format!(".{path} accessor error: {shown} is of the type {found}, expected {wanted}")
    };
    let mut value = object;
    for (depth, name) in names.iter().enumerate() {
        match value {
            Value::Null => return Ok(None),
            Value::Object(fields) => match fields.get(*name) {
                Some(inner) => value = inner,
                None => return Ok(None),
            },
            other => return Err(refuse(depth + 1, other, "map[string]interface{}")),
        }
    }
    if fits(value) {
        Ok(Some(value))
    } else {
        Err(refuse(names.len(), value, wanted))
    }
}
