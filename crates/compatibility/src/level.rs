//! How much a change breaks, and for which parties.

/// The severity of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Nobody has to take action.
    Compatible,
    /// Behavior changes in a way whose impact requires human judgment.
    Risky,
    /// Something that used to work fails.
    Breaking,
}

impl Level {
    /// Returns the level as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Compatible => "compatible",
            Level::Risky => "risky",
            Level::Breaking => "breaking",
        }
    }
}

/// A party affected by a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// Objects in the cluster.
    StoredObjects,
    /// Clients that create or update objects, and users who write YAML.
    Writers,
    /// Clients that read objects.
    Readers,
    /// The operator.
    Operator,
    /// The user who installs the manifests.
    Installer,
}

impl Party {
    /// The party in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Party::StoredObjects => "stored objects",
            Party::Writers => "clients that write",
            Party::Readers => "clients that read",
            Party::Operator => "the operator",
            Party::Installer => "the person who installs",
        }
    }
}
