//! Objects that are admitted in another version than that in which they were written, and cannot be
//! converted to it.
//!
//! # Example: a typo, and a webhook for the other version
//! The webhook is registered for `v1`. A user creates an object of `v2` with `mode: Wekly`.
//! kube-apiserver asks `/convert` for the object in `v1`, calls the mutating webhooks with it,
//! converts it back if they have patched it, and only then validates it with the schema of `v2`. A
//! failed conversion would be status 500 instead of 422 with all invalid fields, and clients retry
//! 500. So the object is returned as it was written, relabeled as `v1` and with an annotation that
//! says so. The defaulting webhooks of this operator leave it unchanged. If another webhook has
//! patched it, the conversion back restores the label and removes the annotation, and the schema of
//! `v2` judges the object.
//!
//! Nothing that is read from storage or written to it is treated in this way: clients would read an
//! object of the wrong shape, or one would be stored. kube-apiserver stores objects without their
//! resource version, and assigns a uid to each new object after the mutating webhooks. So an object
//! without a uid, or with a resource version, is neither read from storage nor written to it.

use serde_json::Value;

use crate::object::FieldError;

/// The annotation of an object that was not converted: the version in which it was written, and
/// why.
pub(super) const ANNOTATION: &str = "rbuilder/unconverted";

/// The contents of the annotation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    /// The version in which the object was written.
    pub(super) version: String,
    /// Why it could not be converted.
    pub(super) error: FieldError,
}

impl Mark {
    /// Returns the mark of an object, if it has one.
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

    /// Relabels an object as one of another version, marked.
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

    /// Returns the object in the version in which it was written, without the mark.
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

/// Returns `true` if the object is neither read from storage nor written to it.
pub(super) fn is_being_admitted(object: &Value) -> bool {
    let is_empty = |field: &str| object["metadata"][field].as_str().is_none_or(str::is_empty);
    is_empty("uid") || !is_empty("resourceVersion")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_restored_object_is_as_it_was_written() {
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
    fn objects_on_their_way_to_and_from_storage_are_recognized() {
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
