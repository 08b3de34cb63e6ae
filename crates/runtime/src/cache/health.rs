//! Health of watches: when each of them last received data, its errors, and whether the operator
//! can work without it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::contact::Contact;

/// Whether startup and readiness depend on a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// Startup doesn't wait for the watch.
    Optional,
    /// Startup waits for the initial list. Afterwards, the process keeps working with stale data.
    AtStart,
    /// Like [`AtStart`](Self::AtStart), and additionally reports the process as not ready while the
    /// watch is stale.
    Always,
}

/// Updated by the watch; everything else reads it through the cache.
#[derive(Debug)]
pub(super) struct WatchHealth {
    /// `None` if all namespaces are watched.
    pub(super) namespace: Option<String>,
    pub(super) contact: Contact,
    synced: AtomicBool,
    lists: AtomicU64,
    errors: AtomicU64,
    /// Number of received objects that belong to other replicas.
    foreign: AtomicU64,
    last_error: Mutex<Option<String>>,
    /// Whether the current staleness was already logged.
    reported: AtomicBool,
}

impl WatchHealth {
    pub(super) fn new(namespace: Option<String>) -> Self {
        Self {
            namespace,
            contact: Contact::new(),
            synced: AtomicBool::new(false),
            lists: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            foreign: AtomicU64::new(0),
            last_error: Mutex::default(),
            reported: AtomicBool::new(false),
        }
    }

    pub(super) fn note_list(&self) {
        self.lists.fetch_add(1, Ordering::Relaxed);
    }

    /// Called when all subscribers have received the initial list.
    pub(super) fn note_synced(&self) {
        self.synced.store(true, Ordering::Relaxed);
    }

    pub(super) fn note_error(&self, error: String) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        *self.lock_last_error() = Some(error);
    }

    pub(super) fn note_foreign(&self) {
        self.foreign.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn foreign(&self) -> u64 {
        self.foreign.load(Ordering::Relaxed)
    }

    pub(super) fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Relaxed)
    }

    pub(super) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// The initial list does not count as a relist.
    pub(super) fn relists(&self) -> u64 {
        self.lists.load(Ordering::Relaxed).saturating_sub(1)
    }

    pub(super) fn last_error(&self) -> Option<String> {
        self.lock_last_error().clone()
    }

    /// Logs once when no data was received for `limit`, and again when the watch recovers.
    pub(super) fn report(&self, kind: &str, selection: &str, limit: Duration) {
        let age = self.contact.age();
        let is_stale = age >= limit;
        // Called periodically, so only log changes.
        if self.reported.swap(is_stale, Ordering::Relaxed) == is_stale {
            return;
        }
        let namespace = self.namespace.as_deref();
        if is_stale {
            let (seconds, error) = (age.as_secs(), self.last_error());
            let error = error.as_deref().unwrap_or(NO_RESPONSE);
            tracing::warn!(
                kind,
                selection,
                namespace,
                seconds,
                error,
                "watch receives no data"
            );
        } else {
            tracing::info!(kind, selection, namespace, "watch receives data again");
        }
    }

    fn lock_last_error(&self) -> MutexGuard<'_, Option<String>> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shown in place of an error if the watch has neither failed nor received a response yet.
pub(super) const NO_RESPONSE: &str = "no response from the API server yet";

/// Snapshot of a watch's state, for troubleshooting.
#[derive(Clone, Debug)]
pub(crate) struct WatchStatus {
    /// Kind and group, e.g. `Deployment.apps`.
    pub(crate) kind: String,
    /// Either `metadata` or `whole`.
    pub(crate) content: &'static str,
    /// Formatted selection. Empty if all objects are selected.
    pub(crate) selection: String,
    pub(crate) namespace: Option<String>,
    pub(crate) need: Need,
    /// Whether all subscribers have received the initial list.
    pub(crate) synced: bool,
    /// Time since any data (events or bookmarks) was received, or since the start of the watch if
    /// there was none yet.
    pub(crate) since_contact: Duration,
    /// The most recent error, even if the watch has recovered since.
    pub(crate) last_error: Option<String>,
    pub(crate) objects: usize,
    /// Relists, not counting the initial list.
    pub(crate) relists: u64,
    /// Errors of both lists and watches.
    pub(crate) errors: u64,
}

impl WatchStatus {
    pub(super) fn order(&self) -> (&str, &str, &str, Option<&str>) {
        (
            &self.kind,
            self.content,
            &self.selection,
            self.namespace.as_deref(),
        )
    }

    pub(super) fn describe_staleness(&self) -> String {
        let (seconds, error) = (self.since_contact.as_secs(), self.last_error.as_deref());
        let error = error.unwrap_or(NO_RESPONSE);
        format!("no data from the watch of {self} for {seconds} s; last error: {error}")
    }
}

impl fmt::Display for WatchStatus {
    /// Formats the kind, selection and namespace (if any), e.g. `Secret in namespace shop`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.selection.is_empty() {
            write!(f, " ({})", self.selection)?;
        }
        if let Some(namespace) = &self.namespace {
            write!(f, " in namespace {namespace}")?;
        }
        Ok(())
    }
}
