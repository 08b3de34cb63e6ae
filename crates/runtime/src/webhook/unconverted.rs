//! Objects that are admitted in a different version than they were written in, and that cannot be
//! converted to it.
//!
//! # Example: a typo, and a webhook for the other version
//! The webhook is registered for `v1`. A user creates a `v2` object with `mode: Wekly`.
//! kube-apiserver asks `/convert` for the object in `v1`, calls the mutating webhooks with it, and
//! converts it back if they have patched it. Only then does it validate the object against the `v2`
//! schema. Failing the conversion would produce a status 500, which clients retry, instead of a 422
//! that lists all invalid fields.
//!
//! The conversion therefore returns the object as written, relabeled as `v1` and annotated to
//! record this. This operator's defaulting webhooks leave it unchanged. If another webhook has
//! patched it, the conversion back restores the label and removes the annotation. In the end, the
//! `v2` schema rejects the object.
//!
//! Objects read from or written to storage never get this treatment, since clients would read or
//! store objects of the wrong shape. kube-apiserver stores objects without their resource version,
//! and assigns a UID to each new object after the mutating webhooks. An object without a UID, or
//! with a resource version, is therefore not on its way from or to storage.

use serde_json::Value;

use crate::object::FieldError;

/// The annotation that marks an unconverted object. Its value is the version in which the object
/// was written, and why it was not converted.
pub(super) const ANNOTATION: &str = "rbuilder/unconverted";

/// The parsed annotation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    /// The version in which the object was written.
    pub(super) version: String,
    /// Why it could not be converted.
    pub(super) error: FieldError,
}

impl Mark {
    /// Returns the mark of an object, or `None` if it has none.
    pub(super) fn of(object: &Value) -> Option<Self> {
        let text = object["metadata"]["annotations"][ANNOTATION].as_str()?;
        let (version, reason) = text.split_once(' ')?;
        let (field, cause) = reason.split_once(": ").unwrap_or((".", reason));
        let (field, cause) = (field.to_owned(), cause.to_owned());
        Some(Self {
            version: version.to_owned(),
            error: FieldError { field, cause },
        })
    }

    /// Relabels an object with another version, and marks it.
    pub(super) fn relabel(&self, mut object: Value, to: &str) -> Value {
        object["apiVersion"] = to.into();
        let Mark { version, error } = self;
        if let Some(metadata) = object["metadata"].as_object_mut() {
            let annotations = metadata
                .entry("annotations")
                .or_insert_with(|| Value::Object(Default::default()));
            if !annotations.is_object() {
                *annotations = Value::Object(Default::default());
            }
            annotations[ANNOTATION] = format!("{version} {error}").into();
        }
        object
    }

    /// Returns the object in its original version, without the mark.
    pub(super) fn restore(&self, mut object: Value) -> Value {
        object["apiVersion"] = self.version.as_str().into();
        if let Some(metadata) = object["metadata"].as_object_mut()
            && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
        {
            annotations.remove(ANNOTATION);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        object
    }
}

/// Returns `true` if the object is being admitted, as opposed to being read from or written to
/// storage.
pub(super) fn is_being_admitted(object: &Value) -> bool {
    let is_empty = |field: &str| object["metadata"][field].as_str().is_none_or(str::is_empty);
    is_empty("uid") || !is_empty("resourceVersion")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn restoring_an_object_undoes_relabeling() {
        let error = FieldError {
            field: ".spec.mode".to_owned(),
            cause: "unknown variant `Wekly`, expected `Daily`: or so".to_owned(),
        };
        let mark = Mark {
            version: "example.com/v2".to_owned(),
            error,
        };
        for metadata in [
            json!({ "name": "a" }),
            json!({ "name": "a", "annotations": { "b": "c" } }),
        ] {
            let written =
                json!({ "apiVersion": "example.com/v2", "metadata": metadata, "spec": { "mode": "Wekly" } });
            let marked = mark.relabel(written.clone(), "example.com/v1");
            assert_eq!(marked["apiVersion"], "example.com/v1");
            assert_eq!(Mark::of(&marked), Some(mark.clone()));
            assert_eq!(mark.restore(marked), written);
        }
    }

    #[test]
    fn objects_to_and_from_storage_are_recognized() {
        let check = |metadata: Value, expected: bool| {
            assert_eq!(
                is_being_admitted(&json!({ "metadata": metadata })),
                expected,
                "{metadata}"
            );
        };
        check(json!({ "name": "created" }), true);
        check(json!({ "uid": "1", "resourceVersion": "2" }), true);
        check(json!({ "uid": "1" }), false);
        check(json!({ "uid": "1", "resourceVersion": "" }), false);
    }
}
