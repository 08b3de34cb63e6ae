//! Oracles: the properties that every run is checked for.

mod data;
mod truth;

use std::fmt;

pub(crate) use data::{Secrets, lost_claim, repeated_secret, replaced_secret};
pub(crate) use truth::{Claims, false_claims};

/// The property violated by a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Oracle {
    /// After a perturbation, the operator settles in a different state than without it.
    EndState,
    /// The result is path-dependent: changing a declaration from A to B ends in a different state
    /// than declaring B directly, or changing it back to A doesn't restore the previous state.
    Path,
    /// The operator keeps writing or reconciling after the last change.
    Quiet,
    /// A deletion is incomplete: the object itself or something that the operator created for it is
    /// left over.
    Deletion,
    /// Data loss: a PersistentVolumeClaim is deleted while its owner exists, a Secret is recreated
    /// with different values, or a generated value is overwritten.
    Data,
    /// The status reports an object as ready when it isn't.
    Truth,
    /// The operator panics.
    Panic,
    /// The operator exits on its own.
    End,
    /// The server rejects a write as invalid, even in an undisturbed run.
    Invalid,
    /// An object keeps failing to reconcile, even in an undisturbed run.
    Error,
    /// The operator sends a request that its role doesn't permit.
    Role,
    /// A user-defined [invariant](crate::Simulation::invariant) is violated.
    Invariant,
    /// A process writes after losing its lease to another replica.
    Leader,
    /// Two runs of the same history differ.
    Determinism,
}

impl Oracle {
    /// Name used in reports.
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
            Self::Error => "error",
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
