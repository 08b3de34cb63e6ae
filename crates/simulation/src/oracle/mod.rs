//! What must hold in every run.

mod data;
mod truth;

use std::fmt;

pub(crate) use data::{Secrets, lost_claim, repeated_secret, replaced_secret};
pub(crate) use truth::{Claims, false_claims};

/// What a failure violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Oracle {
    /// After a perturbation, the operator settles in another state than without it.
    EndState,
    /// A declaration that changes from A to B ends in another state than B from nothing, or one that
    /// goes back to A ends in another state than before.
    Path,
    /// Writes or reconciles do not end after the last change.
    Quiet,
    /// A deleted object, or something that the operator has made for it, remains.
    Deletion,
    /// A PersistentVolumeClaim is deleted while its owner lives, or a Secret is deleted and made again
    /// with other values, or a generated value in it is replaced.
    Data,
    /// A status claims that the object is ready, but it is not.
    Truth,
    /// The operator panics.
    Panic,
    /// The operator ends by itself.
    End,
    /// The server finds a write of the operator invalid, even without perturbations.
    Invalid,
    /// The operator makes a request that its role does not permit.
    Role,
    /// An invariant of the test is violated.
    Invariant,
    /// A process writes after another replica has taken its lease.
    Leader,
    /// Two runs of the same history differ.
    Determinism,
}

impl Oracle {
    /// Returns the name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EndState => "end-state",
            Self::Path => "path",
            Self::Quiet => "quiet",
            Self::Deletion => "deletion",
            Self::Data => "data",
            Self::Truth => "truth",
            Self::Panic => "panic",
            Self::End => "end",
            Self::Invalid => "invalid",
            Self::Role => "role",
            Self::Invariant => "invariant",
            Self::Leader => "leader",
            Self::Determinism => "determinism",
        }
    }
}

impl fmt::Display for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A violated oracle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) oracle: Oracle,
    pub(crate) message: String,
}

impl Violation {
    pub(crate) fn new(oracle: Oracle, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { oracle, message }
    }
}
