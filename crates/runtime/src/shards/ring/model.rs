//! Model of the API server, as seen by the replicas. Stores Leases, and claims that are modified
//! with compare-and-swap.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Claims, ClaimsWrite, Heartbeat, Observed};

#[derive(Default)]
pub(crate) struct Store {
    version: u64,
    pub(crate) claims: Option<(Claims, String)>,
    /// Version of each replica's Lease, and whether the replica is leaving.
    pub(crate) leases: BTreeMap<String, (String, bool)>,
}

impl Store {
    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    pub(crate) fn renew(&mut self, identity: String, leaving: bool) {
        let version = self.next_version();
        self.leases.insert(identity, (version, leaving));
    }

    /// Returns the new version, or `None` if the claims were modified concurrently.
    pub(crate) fn write(&mut self, write: &ClaimsWrite) -> Option<String> {
        if self.claims.as_ref().map(|(_, version)| version) != write.base.as_ref() {
            return None;
        }
        let version = self.next_version();
        self.claims = Some((write.claims.clone(), version.clone()));
        Some(version)
    }

    /// All replicas use the same lease `duration`.
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
