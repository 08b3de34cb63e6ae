//! Stale reads: the API server's cache lags behind and catches up later.

use tokio::time::Instant;

use super::kinds::ResourceId;
use super::store::State;

#[derive(Clone, Debug)]
pub(super) struct Past {
    pub(super) version: u64,
    /// `None` if all kinds are stale.
    pub(super) kind: Option<ResourceId>,
    pub(super) until: Instant,
}

impl State {
    pub(super) fn past_of(&self, id: &ResourceId) -> Option<&Past> {
        let past = self.past.as_ref()?;
        let is_behind = past.kind.as_ref().is_none_or(|kind| kind == id);
        (is_behind && past.until > Instant::now()).then_some(past)
    }

    /// Returns the version that a stale cache serves to reads with `from` as a lower bound, or
    /// `None` to serve the latest one.
    pub(super) fn cached_version(&self, id: &ResourceId, from: u64) -> Option<u64> {
        let version = self.past_of(id)?.version;
        (version >= from).then_some(version)
    }
}
