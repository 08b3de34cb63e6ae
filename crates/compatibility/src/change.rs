//! A classified change.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::level::{Level, Party};
use crate::rules::Rule;

/// One difference between two sets of manifests.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The rule that classifies the change.
    pub rule: &'static Rule,
    /// The level. It depends on the witness for some rules.
    pub level: Level,
    /// Whom the change affects.
    pub affects: BTreeSet<Party>,
    /// The kind of the changed manifest, such as `CustomResourceDefinition`.
    pub kind: String,
    /// The name of the changed manifest, such as `cups.example.com`; with its namespace if it has
    /// one.
    pub name: String,
    /// The version of a CRD.
    pub version: Option<String>,
    /// The path of the changed field or part, such as `spec.size`. Empty for the whole manifest or
    /// the whole object.
    pub field: String,
    /// What changed, as a phrase such as `maximum 5 instead of 9`.
    pub message: String,
    /// An object that shows the effect.
    pub witness: Option<Witness>,
    /// Number of objects that the old schema accepts and the search tried; `None` without a search.
    pub tried: Option<usize>,
    /// True if the search ended without an example because the [`Budget`](crate::Budget) was used
    /// up. The level is then that of the rule.
    pub is_cut_short: bool,
}

impl Change {
    /// Returns whether the change is at least of a level.
    pub fn is_at_least(&self, level: Level) -> bool {
        self.level >= level
    }
}

/// An object that the old schema accepts, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Witness {
    /// The object as a client writes it.
    pub object: Value,
    /// The stored object, if the write is an update.
    pub old: Option<Value>,
    /// The difference.
    pub effect: Effect,
}

/// What becomes of an object that the old schema accepts.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The API server refuses it, with these messages.
    Refused(Vec<String>),
    /// The API server accepts it, and clients see another value in a field.
    ReadsDifferently {
        /// The value before, `None` for an absent field.
        before: Option<Value>,
        /// The value now.
        after: Option<Value>,
    },
}
