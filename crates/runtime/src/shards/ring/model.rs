//! Model of the API server, as seen by the replicas. It stores Leases, and claims modified with
//! compare-and-swap.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Claims, ClaimsWrite, Heartbeat, Observed};

/// Everything that is stored.
#[derive(Default)]
pub(crate) struct Store {
    version: u64,
    /// Claims and their version.
    pub(crate) claims: Option<(Claims, String)>,
    /// For each replica, the version of its Lease and whether it's leaving.
    pub(crate) leases: BTreeMap<String, (String, bool)>,
}

impl Store {
    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// Renews the Lease of a replica.
    pub(crate) fn renew(&mut self, identity: String, leaving: bool) {
        let version = self.next_version();
        self.leases.insert(identity, (version, leaving));
    }

    /// Stores claims, unless they've been modified in the meantime. Returns their version.
    pub(crate) fn write(&mut self, write: &ClaimsWrite) -> Option<String> {
        if self.claims.as_ref().map(|(_, version)| version) != write.base.as_ref() {
            return None;
        }
        let version = self.next_version();
        self.claims = Some((write.claims.clone(), version.clone()));
        Some(version)
    }

    /// Returns the result of a read, where `duration` is the lease duration of all replicas.
    pub(crate) fn read(&self, duration: Duration) -> Observed {
        let heartbeat = |(identity, (version, leaving)): (&String, &(String, bool))| Heartbeat {
            identity: identity.clone(),
            version: version.clone(),
            duration,
            leaving: *leaving,
        };
        Observed {
            claims: self.claims.clone(),
            replicas: self.leases.iter().map(heartbeat).collect(),
        }
    }
}
