//! A classified change.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::level::{Level, Party};
use crate::rules::Rule;

/// A difference between two sets of manifests.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The rule that classifies the change.
    pub rule: &'static Rule,
    /// The severity. For some rules, it depends on the witness.
    pub level: Level,
    /// The parties affected by the change.
    pub affects: BTreeSet<Party>,
    /// Kind of the changed manifest, e.g. `CustomResourceDefinition`.
    pub kind: String,
    /// Name of the changed manifest, e.g. `cups.example.com`. Includes the namespace, if any.
    pub name: String,
    /// The CRD version.
    pub version: Option<String>,
    /// Path of the changed field or part, e.g. `spec.size`. Empty for the entire manifest or
    /// object.
    pub field: String,
    /// What changed, as a phrase, e.g. `maximum 5 instead of 9`.
    pub message: String,
    /// An object that demonstrates the effect.
    pub witness: Option<Witness>,
    /// Number of objects accepted by the old schema that the search tried. `None` if there was no
    /// search.
    pub tried: Option<usize>,
    /// Whether the search ended because the [`Budget`](crate::Budget) was exhausted. Without a
    /// witness, the level is then the rule's default. With one, which another default reads
    /// differently, there may also be an object that is rejected.
    pub is_cut_short: bool,
}

impl Change {
    /// Returns true if the change has at least the given level.
    pub fn is_at_least(&self, level: Level) -> bool {
        self.level >= level
    }
}

/// An object that the old schema accepts, and how the change affects it.
#[derive(Clone, Debug, PartialEq)]
pub struct Witness {
    /// The object as written by a client.
    pub object: Value,
    /// The stored object, if the write is an update.
    pub old: Option<Value>,
    /// The effect on the object.
    pub effect: Effect,
}

/// How a change affects an object that the old schema accepts.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The API server rejects the object, with these messages.
    Refused(Vec<String>),
    /// The API server accepts the object, but clients read a different value in a field.
    ReadsDifferently {
        /// The value before the change; `None` if the field was absent.
        before: Option<Value>,
        /// The value after the change.
        after: Option<Value>,
    },
}
