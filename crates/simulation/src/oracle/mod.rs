//! Oracles: the properties that every run is checked for.

mod data;
mod follows;
mod owners;
mod rollout;
mod truth;

use std::fmt;

pub(crate) use data::{Secrets, is_claim, lost_claim, repeated_secret, replaced_secret};
pub(crate) use follows::Follower;
pub(crate) use owners::useless_owner;
pub(crate) use rollout::not_rolled_out;
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
    /// Data loss: a PersistentVolumeClaim is deleted while its owner exists and still needs one, a
    /// Secret is recreated with different values, or a generated value is overwritten.
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
    /// Whether violations concern the state in which a step ends.
    pub(crate) fn is_of_state(self) -> bool {
        matches!(self, Self::EndState | Self::Path | Self::Quiet | Self::Deletion)
    }

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
    /// What is wrong, e.g. an object and a field. Violations of the same oracle with the same
    /// subject are one finding.
    pub(crate) subject: String,
    pub(crate) message: String,
    /// Index of the step in which it was noticed. `None` if it concerns the whole run.
    pub(crate) step: Option<usize>,
}

impl Violation {
    pub(crate) fn new(oracle: Oracle, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            oracle,
            subject: subject.into(),
            message: message.into(),
            step: None,
        }
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.oracle == other.oracle && self.subject == other.subject
    }
}
