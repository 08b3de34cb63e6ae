//! The health of each watch: when it last received data, its errors, and whether the operator can
//! work without it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::contact::Contact;

/// How the process depends on a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// The process starts without waiting for the watch.
    Optional,
    /// The process waits for the first list, but keeps going if the watch becomes stale.
    AtStart,
    /// Like [`AtStart`](Self::AtStart), but the process is unready while the watch is stale.
    Always,
}

/// The health of one watch, shared by the watch and its cache.
#[derive(Debug)]
pub(super) struct WatchHealth {
    /// `None` for all namespaces.
    pub(super) namespace: Option<String>,
    pub(super) contact: Contact,
    synced: AtomicBool,
    lists: AtomicU64,
    errors: AtomicU64,
    /// Number of received objects that belong to other replicas.
    foreign: AtomicU64,
    last_error: Mutex<Option<String>>,
    /// Whether the missing data has already been logged.
    reported: AtomicBool,
}

impl WatchHealth {
    /// Creates the health of a watch that is about to start.
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

    /// Records that all subscribers have received the first list.
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

    /// Returns the number of received objects that belong to other replicas.
    pub(super) fn foreign(&self) -> u64 {
        self.foreign.load(Ordering::Relaxed)
    }

    pub(super) fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Relaxed)
    }

    pub(super) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Returns the number of lists, not counting the first.
    pub(super) fn relists(&self) -> u64 {
        self.lists.load(Ordering::Relaxed).saturating_sub(1)
    }

    pub(super) fn last_error(&self) -> Option<String> {
        self.lock_last_error().clone()
    }

    /// Logs once that the watch has received no data for `limit`, and once when it receives data
    /// again.
    pub(super) fn report(&self, kind: &str, selection: &str, limit: Duration) {
        let age = self.contact.age();
        let is_stale = age >= limit;
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

/// The error to report for a watch that has not failed yet.
pub(super) const NO_RESPONSE: &str = "no response from the API server yet";

/// A snapshot of the state of a watch, for troubleshooting.
#[derive(Clone, Debug)]
pub(crate) struct WatchStatus {
    /// Kind and group, such as `Deployment.apps`.
    pub(crate) kind: String,
    /// `metadata` if only metadata is kept, otherwise `whole`.
    pub(crate) content: &'static str,
    /// The selection; empty for all objects.
    pub(crate) selection: String,
    /// `None` for all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) need: Need,
    /// Whether all subscribers have received the first list.
    pub(crate) synced: bool,
    /// Time since the watch last received data (events or bookmarks), or since it started.
    pub(crate) since_contact: Duration,
    /// The last error, even if the watch has recovered.
    pub(crate) last_error: Option<String>,
    /// Number of cached objects from this watch.
    pub(crate) objects: usize,
    /// Number of lists, not counting the first.
    pub(crate) relists: u64,
    /// Number of failed lists and watches.
    pub(crate) errors: u64,
}

impl WatchStatus {
    /// Returns the sort key for a list of watches.
    pub(super) fn order(&self) -> (&str, &str, &str, Option<&str>) {
        (
            &self.kind,
            self.content,
            &self.selection,
            self.namespace.as_deref(),
        )
    }

    /// Describes a stale watch and its last error.
    pub(super) fn describe_staleness(&self) -> String {
        let (seconds, error) = (self.since_contact.as_secs(), self.last_error.as_deref());
        let error = error.unwrap_or(NO_RESPONSE);
        format!("no data from the watch of {self} for {seconds} s; last error: {error}")
    }
}

impl fmt::Display for WatchStatus {
    /// Writes the kind, followed by selection and namespace if set, such as `Secret in namespace
    /// shop`.
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
