//! Oracles, i.e. the properties that every run is checked for.

mod data;
mod truth;

use std::fmt;

pub(crate) use data::{Secrets, lost_claim, repeated_secret, replaced_secret};
pub(crate) use truth::{Claims, false_claims};

/// The property that a failure violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Oracle {
    /// After a perturbation, the operator settles in a different state than without it.
    EndState,
    /// The result depends on the path: changing a declaration from A to B ends in a different state
    /// than declaring B right away, or changing it back to A doesn't restore the previous state.
    Path,
    /// The operator keeps writing or reconciling after the last change.
    Quiet,
    /// Something is left over after a deletion, either the object itself or something that the
    /// operator has created for it.
    Deletion,
    /// Data is lost. A PersistentVolumeClaim is deleted while its owner lives, a Secret is
    /// recreated with different values, or a generated value is replaced.
    Data,
    /// The status reports an object as ready although it isn't.
    Truth,
    /// The operator panics.
    Panic,
    /// The operator exits on its own.
    End,
    /// The server rejects a write as invalid, even in a run without perturbations.
    Invalid,
    /// The reconcile of an object keeps failing, even in a run without perturbations.
    Error,
    /// The operator sends a request that isn't permitted by its role.
    Role,
    /// An [invariant](crate::Simulation::invariant) of the test doesn't hold.
    Invariant,
    /// A process writes after it has lost its lease to another replica.
    Leader,
    /// Two runs of the same history are different.
    Determinism,
}

impl Oracle {
    /// Returns the name used in reports.
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
