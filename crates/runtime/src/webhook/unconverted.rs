//! Objects that are admitted in a version other than the one they were written in, but cannot be
//! converted to it.
//!
//! # Example: a typo, and a webhook for the other version
//!
//! Suppose there is a webhook for `v1`, and a user creates a `v2` object with `mode: Wekly`.
//! kube-apiserver first calls `/convert` to get the object in version `v1`. It then calls the
//! mutating webhooks, and converts the object back if one of them returned a patch. Only
//! afterwards, it validates the object against the schema for `v2`. If we let the conversion fail,
//! the response would be a 500 (which clients retry) instead of a 422 with all the invalid fields.
//!
//! Therefore, we return the object as written, but with `v1` in its label and an annotation that
//! marks it. The defaulting webhooks of this operator ignore it. If another webhook patches it, the
//! conversion in the other direction restores the label and removes the annotation. In the end, the
//! object is rejected by the schema for `v2`.
//!
//! We must never do this for objects that are read from or written to storage, since the result
//! does not have the right shape. kube-apiserver stores objects without their resource version, and
//! generates the UID of new objects after calling the mutating webhooks. So an object without a
//! UID, or with a resource version, isn't related to storage.

use serde_json::Value;

use crate::object::FieldError;

/// Marks unconverted objects. Contains the version in which the object was written, and the reason.
pub(super) const ANNOTATION: &str = "rbuilder/unconverted";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) version: String,
    pub(super) error: FieldError,
}

impl Mark {
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

    /// Changes the version in the object's label, and leaves a mark.
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

/// Returns `false` if the object is being read from or written to storage. See the module
/// documentation.
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
