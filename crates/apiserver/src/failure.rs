//! The `Status` objects with which kube-apiserver rejects requests.

use rbuilder_judge::go;
use rbuilder_kubernetes::gvk;
use serde_json::{Value, json};

use super::kinds::{Definition, ResourceId};

/// A cause in the details of an `Invalid` or `Conflict` status.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cause {
    pub(super) reason: &'static str,
    pub(super) field: String,
    /// Includes the reason as a prefix, e.g. `Invalid value: 9: …`.
    pub(super) message: String,
}

impl Cause {
    pub(super) fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: "FieldValueInvalid",
            field: field.into(),
            message: message.into(),
        }
    }

    fn to_json(&self) -> Value {
        json!({ "reason": self.reason, "message": self.message, "field": self.field })
    }
}

/// A rejected request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) code: u16,
    reason: &'static str,
    message: String,
    details: Option<Value>,
    /// Custom reason from a webhook, if it isn't one of the server's own.
    foreign_reason: Option<String>,
}

impl Failure {
    pub(super) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            foreign_reason: None,
        }
    }

    pub(super) fn of_status(status: &Value, message: &str) -> Self {
        let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        // A denial must never turn into a success, whatever code the webhook returned.
        let code = code.filter(|code| *code >= 400).unwrap_or(400);
        let reason = status["reason"].as_str().unwrap_or_default();
        let details = status.get("details").filter(|details| !details.is_null());
        Self {
            details: details.cloned(),
            foreign_reason: Some(reason.to_owned()),
            ..Self::new(code, "", message)
        }
    }

    pub(super) fn internal(why: &str) -> Self {
        Self::of_code(500, format!("Internal error occurred: {why}"))
            .with(json!({ "causes": [{ "message": why }] }))
    }

    pub(super) fn with(self, details: Value) -> Self {
        Self {
            details: Some(details),
            ..self
        }
    }

    pub(super) fn of_code(code: u16, message: impl Into<String>) -> Self {
        let reason = match code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            405 => "MethodNotAllowed",
            409 => "Conflict",
            410 => "Expired",
            413 => "RequestEntityTooLarge",
            415 => "UnsupportedMediaType",
            422 => "Invalid",
            429 => "TooManyRequests",
            500 => "InternalError",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "",
        };
        Self::new(code, reason, message)
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::of_code(400, message)
    }

    pub(super) fn not_found(id: &ResourceId, name: &str) -> Self {
        Self::of_code(404, format!("{id} \"{name}\" not found")).with(details(id, &id.plural, name))
    }

    pub(super) fn already_exists(id: &ResourceId, existing: &Value) -> Self {
        let metadata = &existing["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let is_going = metadata.get("deletionTimestamp").is_some();
        let state = if is_going { "object is being deleted: " } else { "" };
        Self::new(
            409,
            "AlreadyExists",
            format!("{state}{id} \"{name}\" already exists"),
        )
        .with(details(id, &id.plural, name))
    }

    pub(super) fn conflict(id: &ResourceId, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {id} \"{name}\": {why}");
        Self::of_code(409, message).with(details(id, &id.plural, name))
    }

    pub(super) fn modified(id: &ResourceId, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(id, name, why)
    }

    pub(super) fn forbidden(id: &ResourceId, name: &str, why: &str, cause: Option<Cause>) -> Self {
        let mut details = details(id, &id.plural, name);
        if let Some(cause) = cause {
            details["causes"] = json!([cause.to_json()]);
        }
        Self::of_code(403, format!("{id} \"{name}\" is forbidden: {why}")).with(details)
    }

    // Collection requests have no name to quote.
    pub(super) fn denied(id: &ResourceId, name: &str, why: &str) -> Self {
        if !name.is_empty() {
            return Self::forbidden(id, name, why, None);
        }
        Self::of_code(403, format!("{id} is forbidden: {why}")).with(details(id, &id.plural, name))
    }

    pub(super) fn invalid(definition: &Definition, name: &str, causes: &[Cause]) -> Self {
        let kind = gvk::qualify(&definition.kind, &definition.id.group);
        Self::invalid_as(&definition.id, &definition.kind, &kind, name, causes)
    }

    /// Same as [`invalid`](Self::invalid), for the few checks whose message contains the resource
    /// instead of the kind.
    pub(super) fn invalid_resource(id: &ResourceId, name: &str, cause: Cause) -> Self {
        Self::invalid_as(id, &id.plural, &id.to_string(), name, &[cause])
    }

    pub(super) fn invalid_scale(name: &str, cause: Cause) -> Self {
        let id = ResourceId::new("autoscaling", "scales");
        Self::invalid_as(&id, "Scale", "Scale.autoscaling", name, &[cause])
    }

    /// For parameters and options of requests, e.g. `CreateOptions`.
    pub(super) fn invalid_options(options: &str, causes: &[Cause]) -> Self {
        let group = ResourceId::new("meta.k8s.io", "");
        Self::invalid_as(&group, options, &format!("{options}.meta.k8s.io"), "", causes)
    }

    /// A disruption budget forbids an eviction.
    pub(super) fn disruption(code: u16, message: &str, cause: &str, retry_after: Option<u64>) -> Self {
        let mut details = json!({ "causes": [{ "reason": "DisruptionBudget", "message": cause }] });
        if let Some(seconds) = retry_after {
            details["retryAfterSeconds"] = seconds.into();
        }
        Self::of_code(code, message).with(details)
    }

    /// Adds the object to the details.
    pub(super) fn about(mut self, kind: &str, group: &str, name: &str) -> Self {
        let details = self.details.get_or_insert_with(|| json!({}));
        for (field, value) in [("name", name), ("group", group), ("kind", kind)] {
            details[field] = value.into();
        }
        self
    }

    /// The path has no handler for any method.
    pub(super) fn unknown_path() -> Self {
        Self::of_code(404, "the server could not find the requested resource").with(json!({}))
    }

    /// The path has no handler for the method.
    pub(super) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::of_code(405, message).with(json!({}))
    }

    fn invalid_as(id: &ResourceId, kind: &str, subject: &str, name: &str, causes: &[Cause]) -> Self {
        let said: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        let said = match said.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let mut details = details(id, kind, name);
        details["causes"] = causes.iter().map(Cause::to_json).collect();
        Self::of_code(422, format!("{subject} \"{name}\" is invalid: {said}")).with(details)
    }

    pub(super) fn invalid_patch(patched: &Value, why: &str) -> Self {
        let shown = go::quote(&go::json(patched));
        let cause = Cause::invalid("patch", format!("Invalid value: {shown}: {why}"));
        Self::of_code(422, format!(" \"\" is invalid: patch: {}", cause.message))
            .with(json!({ "causes": [cause.to_json()] }))
    }

    pub(super) fn apply_conflict(conflicts: &[(String, Vec<String>)]) -> Self {
        let count: usize = conflicts.iter().map(|(_, paths)| paths.len()).sum();
        let causes = conflicts.iter().flat_map(|(who, paths)| {
            paths.iter().map(move |path| Cause {
                reason: "FieldManagerConflict",
                field: path.clone(),
                message: format!("conflict with {who}"),
            })
        });
        let causes: Value = causes.map(|cause| cause.to_json()).collect();
        let said = match conflicts {
            [(who, paths)] if paths.len() == 1 => format!("1 conflict: conflict with {who}: {}", paths[0]),
            several => {
                let parts = several.iter().map(|(who, paths)| {
                    let lines: Vec<String> = paths.iter().map(|path| format!("\n- {path}")).collect();
                    format!("conflicts with {who}:{}", lines.concat())
                });
                format!("{count} conflicts: {}", parts.collect::<Vec<_>>().join("\n"))
            }
        };
        Self::of_code(409, format!("Apply failed with {said}")).with(json!({ "causes": causes }))
    }

    pub(super) fn too_large_version(wanted: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        Self::of_code(504, message).with(json!({
            "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
            "retryAfterSeconds": 1,
        }))
    }

    /// As [`too_large_version`](Self::too_large_version), from etcd instead of the watch cache.
    pub(super) fn too_large_exact_version(wanted: u64, current: u64) -> Self {
        let mut failure = Self::too_large_version(wanted, current);
        let details = failure.details.as_mut().and_then(Value::as_object_mut);
        details.map(|details| details.remove("retryAfterSeconds"));
        failure
    }

    pub(super) fn unsupported_verb(id: &ResourceId, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{id}\"");
        Self::of_code(405, message).with(details(id, &id.plural, ""))
    }

    pub(super) fn unsupported_patch(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::of_code(415, message)
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        let reason = self.foreign_reason.as_deref().unwrap_or(self.reason);
        if !reason.is_empty() {
            status["reason"] = reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

impl From<rbuilder_judge::Failure> for Failure {
    fn from(failure: rbuilder_judge::Failure) -> Self {
        Self {
            code: failure.code(),
            reason: failure.reason(),
            message: failure.message(),
            details: failure.status().get_mut("details").map(Value::take),
            foreign_reason: None,
        }
    }
}

fn details(id: &ResourceId, kind: &str, name: &str) -> Value {
    let mut details = json!({ "kind": kind });
    for (key, value) in [("name", name), ("group", id.group.as_str())] {
        if !value.is_empty() {
            details[key] = value.into();
        }
    }
    details
}
