//! A model of the API server as replicas see it: Leases, and the claims, which are written by
//! compare-and-swap.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Claims, ClaimsWrite, Heartbeat, Observed};

/// What is stored at the API server.
#[derive(Default)]
pub(crate) struct Store {
    version: u64,
    /// The claims and their version.
    pub(crate) claims: Option<(Claims, String)>,
    /// The version of each replica's Lease, and whether the replica is leaving.
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

    /// Stores claims if their base is still current. Returns their version.
    pub(crate) fn write(&mut self, write: &ClaimsWrite) -> Option<String> {
        if self.claims.as_ref().map(|(_, version)| version) != write.base.as_ref() {
            return None;
        }
        let version = self.next_version();
        self.claims = Some((write.claims.clone(), version.clone()));
        Some(version)
    }

    /// Returns what one read returns. `duration` is the lease duration of all replicas.
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
