//! Model of the API server, as seen by the replicas. Stores Leases, and claims that are modified
//! with compare-and-swap.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Claims, ClaimsWrite, Heartbeat, Observed};
use crate::shards::right::RightLease;

#[derive(Default)]
pub(crate) struct Store {
    version: u64,
    pub(crate) claims: Option<(Claims, String)>,
    /// Whether the claims were last written by anything else than a replica.
    pub(crate) edited: bool,
    /// All claims so far, i.e. what a backup may contain.
    pub(crate) history: Vec<Claims>,
    /// The leader's Lease.
    pub(crate) right: Option<RightLease>,
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
        self.set_claims(write.claims.clone(), false)
    }

    /// Stores claims unconditionally.
    pub(crate) fn set_claims(&mut self, claims: Claims, edited: bool) -> Option<String> {
        let version = self.next_version();
        self.edited = edited;
        self.history.push(claims.clone());
        self.claims = Some((claims, version.clone()));
        Some(version)
    }

    /// Returns the stored Lease, or `None` if it was modified concurrently.
    pub(crate) fn write_right(
        &mut self,
        base: Option<&str>,
        holder: &str,
        duration: Duration,
    ) -> Option<RightLease> {
        if self.right.as_ref().map(|right| right.version.as_str()) != base {
            return None;
        }
        let version = self.next_version();
        self.right = Some(RightLease {
            holder: holder.to_owned(),
            renewal: version.clone(),
            duration,
            version,
        });
        self.right.clone()
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
            edited: self.edited,
            replicas: self.leases.iter().map(heartbeat).collect(),
        }
    }
}
