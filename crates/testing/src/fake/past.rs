//! Reads from the past: the API server's cache is behind, and catches up.

use tokio::time::Instant;

use super::kinds::ResourceId;
use super::store::State;

/// A past state, which lists and watches receive if they accept any resource version.
#[derive(Clone, Debug)]
pub(super) struct Past {
    pub(super) version: u64,
    /// The only kind that is behind; `None` for all kinds.
    pub(super) kind: Option<ResourceId>,
    /// When the cache has caught up.
    pub(super) until: Instant,
}

impl State {
    /// Returns the past in which a kind is read now, if its cache is behind.
    pub(super) fn past_of(&self, id: &ResourceId) -> Option<&Past> {
        let past = self.past.as_ref()?;
        let is_behind = past.kind.as_ref().is_none_or(|kind| kind == id);
        (is_behind && past.until > Instant::now()).then_some(past)
    }

    /// Returns the version that a read receives which accepts any version from `from` on. `None` for the
    /// latest one.
    pub(super) fn cached_version(&self, id: &ResourceId, from: u64) -> Option<u64> {
        let version = self.past_of(id)?.version;
        (version >= from).then_some(version)
    }
}
