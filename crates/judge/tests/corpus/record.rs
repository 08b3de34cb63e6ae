//! The recorded answers of kube-apiserver.
//!
//! A line with a kind is followed by a line for each write of its objects.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Write;

/// The answer to a write.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    /// Reason, field and message of each cause, sorted: the server visits fields at random.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) causes: Vec<(String, String, String)>,
    /// The message of a failure without causes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    /// Sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    /// The object, without what the server sets at random.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(crate) object: Value,
}

/// A write and its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Recorded {
    #[serde(flatten)]
    pub(crate) write: Write,
    #[serde(flatten)]
    pub(crate) answer: Answer,
}
