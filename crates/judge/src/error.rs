//! Violations, with the API server's field, reason and message.

use std::fmt;

use serde_json::Value;

use crate::go;
use crate::path::Path;

/// The reason for a violation, as found in `details.causes[].reason` of a `Status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// A value that must be unique occurs more than once.
    Duplicate,
    /// A value that isn't permitted in the current state.
    Forbidden,
    /// A malformed value.
    Invalid,
    /// A value of the wrong type.
    TypeInvalid,
    /// A reference to something that doesn't exist.
    NotFound,
    /// A value that isn't in an enumeration.
    NotSupported,
    /// A required value is missing.
    Required,
    /// A string that is too long.
    TooLong,
    /// A list or an object with too many items.
    TooMany,
    /// The server failed to validate the value.
    Internal,
}

impl Reason {
    /// The reason as spelled in a `Status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Duplicate => "FieldValueDuplicate",
            Reason::Forbidden => "FieldValueForbidden",
            Reason::Invalid => "FieldValueInvalid",
            Reason::TypeInvalid => "FieldValueTypeInvalid",
            Reason::NotFound => "FieldValueNotFound",
            Reason::NotSupported => "FieldValueNotSupported",
            Reason::Required => "FieldValueRequired",
            Reason::TooLong => "FieldValueTooLong",
            Reason::TooMany => "FieldValueTooMany",
            Reason::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Reason::Duplicate => "Duplicate value",
            Reason::Forbidden => "Forbidden",
            Reason::Invalid | Reason::TypeInvalid => "Invalid value",
            Reason::NotFound => "Not found",
            Reason::NotSupported => "Unsupported value",
            Reason::Required => "Required value",
            Reason::TooLong => "Too long",
            Reason::TooMany => "Too many",
            Reason::Internal => "Internal error",
        }
    }

    /// Returns true if violations with this reason keep the server from running CEL rules.
    pub(crate) fn blocks_rules(self) -> bool {
        matches!(
            self,
            Reason::NotSupported | Reason::Required | Reason::TooLong | Reason::TooMany | Reason::TypeInvalid
        )
    }
}

/// A violation of the schema, a rule or the metadata conventions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The reason.
    pub reason: Reason,
    /// The path of the field, e.g. `spec.ports[0].name`. `<nil>` for the object itself.
    pub field: String,
    /// The message without the field.
    pub message: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.message)
    }
}

impl FieldError {
    fn new(reason: Reason, field: &Path, value: Option<&Value>, detail: &str) -> FieldError {
        FieldError::with_text(reason, field, value.map(show).as_deref(), detail)
    }

    fn with_text(reason: Reason, field: &Path, value: Option<&str>, detail: &str) -> FieldError {
        let mut message = reason.words().to_owned();
        for part in value.into_iter().chain([detail]) {
            if !part.is_empty() {
                message.push_str(": ");
                message.push_str(part);
            }
        }
        FieldError {
            reason,
            field: field.to_string(),
            message,
        }
    }

    pub(crate) fn invalid(field: &Path, value: &Value, detail: &str) -> FieldError {
        FieldError::new(Reason::Invalid, field, Some(value), detail)
    }

    /// Like [`FieldError::invalid`], for structs, whose fields Go doesn't print in alphabetical
    /// order.
    pub(crate) fn invalid_text(field: &Path, value: &str, detail: &str) -> FieldError {
        FieldError::with_text(Reason::Invalid, field, Some(value), detail)
    }

    /// Like [`FieldError::invalid`], but omits the value.
    pub(crate) fn invalid_part(field: &Path, detail: &str) -> FieldError {
        FieldError::new(Reason::Invalid, field, None, detail)
    }

    pub(crate) fn type_invalid(field: &Path, value: &str, detail: &str) -> FieldError {
        FieldError::new(Reason::TypeInvalid, field, Some(&value.into()), detail)
    }

    pub(crate) fn duplicate(field: &Path, value: Option<&Value>) -> FieldError {
        FieldError::new(Reason::Duplicate, field, value, "")
    }

    /// Like [`FieldError::not_supported`], for structs.
    pub(crate) fn not_supported_text(field: &Path, value: &str, detail: &str) -> FieldError {
        FieldError::with_text(Reason::NotSupported, field, Some(value), detail)
    }

    /// Like [`FieldError::duplicate`], for structs.
    pub(crate) fn duplicate_text(field: &Path, value: &str) -> FieldError {
        FieldError::with_text(Reason::Duplicate, field, Some(value), "")
    }

    pub(crate) fn not_found(field: &Path, value: &Value) -> FieldError {
        FieldError::new(Reason::NotFound, field, Some(value), "")
    }

    pub(crate) fn forbidden(field: &Path, detail: &str) -> FieldError {
        FieldError::new(Reason::Forbidden, field, None, detail)
    }

    pub(crate) fn required(field: &Path, detail: &str) -> FieldError {
        FieldError::new(Reason::Required, field, None, detail)
    }

    pub(crate) fn not_supported(field: &Path, value: &Value, allowed: &[Value]) -> FieldError {
        let allowed = allowed.iter().map(|allowed| match allowed {
            Value::String(text) => go::quote(text),
            other => go::quote(&go::json(other)),
        });
        let allowed: Vec<String> = allowed.collect();
        let detail = format!("supported values: {}", allowed.join(", "));
        FieldError::new(Reason::NotSupported, field, Some(value), &detail)
    }

    pub(crate) fn too_long(field: &Path, most: u64) -> FieldError {
        let unit = if most == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {most} {unit}");
        FieldError::new(Reason::TooLong, field, None, &detail)
    }

    pub(crate) fn too_many(field: &Path, count: usize, most: u64) -> FieldError {
        let unit = if most == 1 { "item" } else { "items" };
        let detail = format!("must have at most {most} {unit}");
        FieldError::new(Reason::TooMany, field, Some(&count.into()), &detail)
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::String(text) => go::quote(text),
        Value::Bool(_) | Value::Number(_) => go::plain(value),
        other => go::json(other),
    }
}
