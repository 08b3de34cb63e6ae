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
    /// The level. For some rules, it depends on the witness.
    pub level: Level,
    /// The parties affected by the change.
    pub affects: BTreeSet<Party>,
    /// The kind of the changed manifest, such as `CustomResourceDefinition`.
    pub kind: String,
    /// The name of the changed manifest, such as `cups.example.com`; includes the namespace if
    /// there is one.
    pub name: String,
    /// The CRD version.
    pub version: Option<String>,
    /// The path of the changed field or part, such as `spec.size`. Empty for the entire manifest or
    /// the entire object.
    pub field: String,
    /// What changed, as a phrase such as `maximum 5 instead of 9`.
    pub message: String,
    /// An object that shows the effect.
    pub witness: Option<Witness>,
    /// Number of objects accepted by the old schema that the search tried; `None` without a search.
    pub tried: Option<usize>,
    /// True if the search ended without an example because the [`Budget`](crate::Budget) was used
    /// up. In this case, the level is the rule's default.
    pub is_cut_short: bool,
}

impl Change {
    /// Returns whether the change has at least the given level.
    pub fn is_at_least(&self, level: Level) -> bool {
        self.level >= level
    }
}

/// An object that the old schema accepts, and the change's effect on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Witness {
    /// The object as written by a client.
    pub object: Value,
    /// The stored object, if the write is an update.
    pub old: Option<Value>,
    /// The effect on the object.
    pub effect: Effect,
}

/// The effect on an object that the old schema accepts.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The API server rejects it, with these messages.
    Refused(Vec<String>),
    /// The API server accepts it, and clients read a different value in a field.
    ReadsDifferently {
        /// The value before the change; `None` for an absent field.
        before: Option<Value>,
        /// The value after the change.
        after: Option<Value>,
    },
}
