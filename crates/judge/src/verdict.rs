//! The API server's response to a write.

use rbuilder_kubernetes::gvk;
use serde_json::{Value, json};

use crate::error::FieldError;
use crate::go;

/// The response to a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The object that the server stores, or the reason for the rejection.
    pub result: Result<Value, Failure>,
    /// Contents of the `Warning` headers.
    pub warnings: Vec<String>,
    /// Checks that this crate can't evaluate. They're assumed to pass.
    pub undecided: Vec<Undecided>,
}

impl Verdict {
    /// Prepends the warnings of an earlier step.
    pub(crate) fn after(self, mut warnings: Vec<String>) -> Verdict {
        warnings.extend(self.warnings);
        Verdict { warnings, ..self }
    }
}

/// A check whose result is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// The path of the field.
    pub field: String,
    /// The question, e.g. ``whether it matches the pattern `\p{Greek}` ``.
    pub what: String,
}

/// A rejected write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The object can't be decoded (400 `BadRequest`).
    Malformed {
        /// The full message.
        message: String,
        /// Individual strict decoding errors, e.g. `unknown field "spec.sise"`.
        problems: Vec<String>,
    },
    /// The request is too large (413 `RequestEntityTooLarge`).
    TooLarge,
    /// The object is invalid (422 `Invalid`).
    Invalid {
        /// The kind, such as `Widget`.
        kind: String,
        /// The group of the kind.
        group: String,
        /// The name of the object.
        name: String,
        /// The violations, of which there's at least one.
        errors: Vec<FieldError>,
    },
}

impl Failure {
    pub(crate) fn malformed(message: String) -> Failure {
        Failure::Malformed {
            message,
            problems: Vec::new(),
        }
    }

    /// The status code.
    pub fn code(&self) -> u16 {
        match self {
            Failure::Malformed { .. } => 400,
            Failure::TooLarge => 413,
            Failure::Invalid { .. } => 422,
        }
    }

    /// The `Status` reason.
    pub fn reason(&self) -> &'static str {
        match self {
            Failure::Malformed { .. } => "BadRequest",
            Failure::TooLarge => "RequestEntityTooLarge",
            Failure::Invalid { .. } => "Invalid",
        }
    }

    /// The `Status` message, e.g. `Widget.example.com "a" is invalid: spec.size: Required value`.
    pub fn message(&self) -> String {
        match self {
            Failure::Malformed { message, .. } => message.clone(),
            Failure::TooLarge => format!("Request entity too large: limit is {}", crate::decode::MOST_BYTES),
            Failure::Invalid {
                kind,
                group,
                name,
                errors,
            } => {
                let mut messages: Vec<String> = Vec::new();
                // Deduplicate messages like Go's `Aggregate`.
                for error in errors.iter().map(FieldError::to_string) {
                    if !messages.contains(&error) {
                        messages.push(error);
                    }
                }
                let messages = match &messages[..] {
                    [message] => message.clone(),
                    messages => format!("[{}]", messages.join(", ")),
                };
                let kind = gvk::qualify(kind, group);
                format!("{kind} {} is invalid: {messages}", go::quote(name))
            }
        }
    }

    /// Returns the server's `Status`.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "message": self.message(), "reason": self.reason(), "code": self.code(),
        });
        if let Failure::Invalid {
            kind,
            group,
            name,
            errors,
        } = self
        {
            let causes = errors.iter().map(|error| {
                json!({ "reason": error.reason.as_str(), "message": error.message, "field": error.field })
            });
            let causes: Vec<Value> = causes.collect();
            status["details"] = json!({ "kind": kind, "causes": causes });
            for (key, value) in [("name", name), ("group", group)] {
                if !value.is_empty() {
                    status["details"][key] = value.as_str().into();
                }
            }
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;

    #[test]
    fn message_has_each_violation_once() {
        let invalid = |errors: &[FieldError]| Failure::Invalid {
            kind: "Widget".to_owned(),
            group: "example.com".to_owned(),
            name: "a".to_owned(),
            errors: errors.to_vec(),
        };
        let required = FieldError::required(&Path::root().child("spec"), "");
        let too_long = FieldError::too_long(&Path::root().child("spec").index(0), 1);
        assert_eq!(
            invalid(std::slice::from_ref(&required)).message(),
            "Widget.example.com \"a\" is invalid: spec: Required value"
        );
        let failure = invalid(&[required.clone(), too_long, required]);
        assert_eq!(
            failure.message(),
            "Widget.example.com \"a\" is invalid: \
             [spec: Required value, spec[0]: Too long: may not be more than 1 byte]"
        );
        assert_eq!(
            failure.status()["details"]["causes"].as_array().map(Vec::len),
            Some(3)
        );
        assert_eq!(failure.status()["code"], 422);
    }
}
