//! Denials of admission requests, as the API server returns them to clients.

use std::fmt;

use kube::core::Status;
use kube::core::response::{StatusCause, StatusDetails};
use rbuilder_kubernetes::gvk;

use super::Warnings;
use crate::error::Error;
use crate::object::FieldError;

/// The denial of an admission request, with a message, an HTTP status, and possibly the paths of
/// invalid fields.
///
/// ```
/// use rbuilder::Denied;
///
/// let one = Denied::invalid("spec.size", "must be odd");
/// let several = one.and("spec.schedule", "must be a cron expression of five fields");
/// assert_eq!(
///     several.to_string(),
///     "spec.size: must be odd; spec.schedule: must be a cron expression of five fields"
/// );
/// let rule: Denied = "the cluster is frozen until Monday".into();
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Denied {
    status: Box<Status>,
    warnings: Warnings,
}

impl Denied {
    /// Denies a request because a field is invalid. As for built-in kinds, the status is 422 and
    /// the reason is `Invalid`.
    ///
    /// `field` should be a path such as `spec.ports[0].name`. The object's name is added to the
    /// response, so it looks just like an error of the API server: `CronJob.batch.example.com
    /// "nightly" is invalid: spec.schedule: must be a cron expression`.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        let mut status = Status::failure("", "Invalid");
        status.code = 422;
        Self::of(Box::new(status)).and(field, message)
    }

    pub(super) fn undecodable(error: &FieldError) -> Self {
        let parent = error.field.strip_prefix('.').unwrap_or(&error.field);
        // Like the API server, report the path of a missing field itself rather than of its parent.
        let missing = error
            .cause
            .strip_prefix("missing field `")
            .and_then(|rest| rest.strip_suffix('`'));
        let mut status = Status::failure("", "Invalid");
        status.code = 422;
        let denied = Self::of(Box::new(status));
        match missing {
            Some(name) if parent.is_empty() => denied.and_cause("FieldValueRequired", name, "Required value"),
            Some(name) => {
                let path = format!("{parent}.{name}");
                denied.and_cause("FieldValueRequired", &path, "Required value")
            }
            None => denied.and(parent, &error.cause),
        }
    }

    /// Adds another invalid field.
    #[must_use]
    pub fn and(self, field: impl Into<String>, message: impl Into<String>) -> Self {
        self.and_cause("FieldValueInvalid", &field.into(), &message.into())
    }

    fn and_cause(mut self, reason: &str, field: &str, message: &str) -> Self {
        if !self.status.message.is_empty() {
            self.status.message.push_str("; ");
        }
        self.status.message.push_str(&format!("{field}: {message}"));
        let details = self.status.details.get_or_insert_with(|| StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: 0,
        });
        details.causes.push(StatusCause {
            reason: reason.to_owned(),
            message: message.to_owned(),
            field: field.to_owned(),
        });
        self
    }

    /// Denies a request if any fields are invalid, and allows it otherwise. Like
    /// [`invalid`](Self::invalid), but for validators that check more than one field.
    ///
    /// ```
    /// # use rbuilder::Denied;
    /// fn check(size: i32, name: &str) -> Result<(), Denied> {
    ///     let mut errors = Vec::new();
    ///     if size % 2 == 0 {
    ///         errors.push(("spec.size", "must be odd"));
    ///     }
    ///     if name.len() > 52 {
    ///         errors.push(("metadata.name", "must be no more than 52 characters"));
    ///     }
    ///     Denied::if_any(errors)
    /// }
    ///
    /// assert!(check(3, "web").is_ok());
    /// assert_eq!(check(2, "web").unwrap_err().to_string(), "spec.size: must be odd");
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a denial unless `errors` is empty.
    pub fn if_any<F, M>(errors: impl IntoIterator<Item = (F, M)>) -> Result<(), Self>
    where
        F: Into<String>,
        M: Into<String>,
    {
        let mut errors = errors.into_iter();
        let Some((field, message)) = errors.next() else {
            return Ok(());
        };
        let first = Self::invalid(field, message);
        Err(errors.fold(first, |denied, (field, message)| denied.and(field, message)))
    }

    /// Denies a request because it is forbidden. The status is 403 and the reason is `Forbidden`.
    /// Strings and most errors are converted to this as well.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::with_status(403, "Forbidden", message)
    }

    /// Denies a request with an arbitrary status. `code` must be at least 400, and `reason` should
    /// be a single CamelCase word.
    pub fn with_status(code: u16, reason: &str, message: impl Into<String>) -> Self {
        let mut status = Status::failure(&message.into(), reason);
        status.code = code;
        Self::of(Box::new(status))
    }

    /// Adds a warning that is sent to the client together with the denial. It should be shorter
    /// than 120 characters.
    #[must_use]
    pub fn warning(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Returns the status for a request, given the group, kind and name of its object.
    ///
    /// For an invalid object, clients read its kind and name from the details; without them,
    /// kubectl just prints "The request is invalid". The details of a status from the API server
    /// are preserved.
    pub(super) fn status_of(&self, group: &str, kind: &str, name: &str) -> Status {
        let mut status = self.status();
        let Some(details) = status.details.as_mut().filter(|_| status.reason == "Invalid") else {
            return status;
        };
        if !(details.group.is_empty() && details.kind.is_empty() && details.name.is_empty()) {
            return status;
        }
        (details.group, details.kind, details.name) = (group.into(), kind.into(), name.into());
        let subject = gvk::qualify(kind, group);
        status.message = format!(
            "{subject} {name:?} is invalid: {}",
            format_causes(details, &status.message)
        );
        status
    }

    fn status(&self) -> Status {
        (*self.status).clone()
    }

    pub(super) fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    fn of(status: Box<Status>) -> Self {
        Self {
            status,
            warnings: Warnings::new(),
        }
    }
}

/// Formats invalid fields in the same way as the API server.
fn format_causes(details: &StatusDetails, otherwise: &str) -> String {
    let errors: Vec<String> = details
        .causes
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    match &*errors {
        [] => otherwise.to_owned(),
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.status.message)
    }
}

impl std::error::Error for Denied {}

impl From<&str> for Denied {
    fn from(message: &str) -> Self {
        Self::forbidden(message)
    }
}

impl From<String> for Denied {
    fn from(message: String) -> Self {
        Self::forbidden(message)
    }
}

/// Passes an error response of the API server on to the client, including its status.
impl From<kube::Error> for Denied {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code >= 400 => Self::of(status),
            error => Self::from(Error::from(error)),
        }
    }
}

impl From<Error> for Denied {
    fn from(error: Error) -> Self {
        if let Some(kube::Error::Api(status)) = error.downcast_ref::<kube::Error>()
            && status.code >= 400
        {
            return Self::of(status.clone());
        }
        if let Some(denied) = error.downcast_ref::<Self>() {
            return denied.clone();
        }
        Self::forbidden(format!("{error:#}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_status_and_message() {
        let check = |denied: Denied, code: u16, reason: &str, message: &str| {
            let status = denied.status();
            assert_eq!(
                (status.code, status.reason.as_str(), status.message.as_str()),
                (code, reason, message)
            );
        };
        check("no".into(), 403, "Forbidden", "no");
        check(Error::new("not now").into(), 403, "Forbidden", "not now");
        check(
            Denied::with_status(429, "TooManyRequests", "later"),
            429,
            "TooManyRequests",
            "later",
        );
        let gone = || {
            let mut status = Status::failure("no such object", "NotFound");
            status.code = 404;
            kube::Error::Api(Box::new(status))
        };
        check(gone().into(), 404, "NotFound", "no such object");
        check(Error::from(gone()).into(), 404, "NotFound", "no such object");
        let inner = Denied::invalid("spec.a", "is odd");
        check(Error::from(inner).into(), 422, "Invalid", "spec.a: is odd");
    }

    #[test]
    fn several_invalid_fields_form_one_denial() {
        assert_eq!(Denied::if_any(Vec::<(&str, &str)>::new()), Ok(()));
        let both = Denied::if_any([("spec.a", "is odd"), ("spec.b", "is even")]);
        let expected = Denied::invalid("spec.a", "is odd").and("spec.b", "is even");
        assert_eq!(both, Err(expected));
    }

    #[test]
    fn each_invalid_field_is_a_cause() {
        let denied = Denied::invalid("spec.a", "is odd").and("spec.b", "is even");
        let causes = denied.status().details.unwrap().causes;
        let fields: Vec<_> = causes
            .iter()
            .map(|cause| (&*cause.field, &*cause.message))
            .collect();
        assert_eq!(fields, [("spec.a", "is odd"), ("spec.b", "is even")]);
    }

    #[test]
    fn invalid_object_is_reported_in_the_api_servers_format() {
        let check = |denied: Denied, group: &str, expected: [&str; 4]| {
            let status = denied.status_of(group, "Cup", "mine");
            let details = status.details.as_ref();
            let details = details.map_or(["", "", ""], |details| {
                [&*details.group, &*details.kind, &*details.name]
            });
            assert_eq!([&[&*status.message][..], &details].concat(), expected);
        };
        let group = "cache.example.com";
        let one = Denied::invalid("spec.a", "is odd");
        check(
            one.clone(),
            group,
            [
                "Cup.cache.example.com \"mine\" is invalid: spec.a: is odd",
                group,
                "Cup",
                "mine",
            ],
        );
        check(
            one.and("spec.b", "is even"),
            "",
            [
                "Cup \"mine\" is invalid: [spec.a: is odd, spec.b: is even]",
                "",
                "Cup",
                "mine",
            ],
        );
        check(
            "the cluster is frozen".into(),
            group,
            ["the cluster is frozen", "", "", ""],
        );
        // A status about a different object must not be modified.
        let mut other = Denied::invalid("spec.c", "is gone");
        let details = other.status.details.as_mut().unwrap();
        (details.kind, details.name) = ("Pod".into(), "other".into());
        check(other, group, ["spec.c: is gone", "", "Pod", "other"]);
    }

    #[test]
    fn undecodable_field_is_named() {
        let check = |field: &str, cause: &str, expected: [&str; 3]| {
            let error = FieldError {
                field: field.to_owned(),
                cause: cause.to_owned(),
            };
            let status = Denied::undecodable(&error).status();
            assert_eq!((status.code, &*status.reason), (422, "Invalid"));
            let causes = status.details.unwrap().causes;
            assert_eq!(
                [&*causes[0].reason, &*causes[0].field, &*causes[0].message],
                expected
            );
        };
        let wrong = "invalid type: string \"three\", expected i32";
        check(".spec.size", wrong, ["FieldValueInvalid", "spec.size", wrong]);
        let required = "Required value";
        check(
            ".spec",
            "missing field `size`",
            ["FieldValueRequired", "spec.size", required],
        );
        check(
            ".",
            "missing field `spec`",
            ["FieldValueRequired", "spec", required],
        );
    }
}
