//! The health of each watch: the time of its last data, its errors, and whether the operator can work without it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::contact::Contact;

/// What a watch without data means for the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// The process starts without the watch.
    Optional,
    /// The process waits for the first list, and then goes on without data.
    AtStart,
    /// As [`AtStart`](Self::AtStart), and the process is not ready while the watch is stale.
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
    last_error: Mutex<Option<String>>,
    /// `true` once the log says that the watch receives no data.
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
            last_error: Mutex::default(),
            reported: AtomicBool::new(false),
        }
    }

    pub(super) fn note_list(&self) {
        self.lists.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that the first list was delivered to all subscribers.
    pub(super) fn note_synced(&self) {
        self.synced.store(true, Ordering::Relaxed);
    }

    pub(super) fn note_error(&self, error: String) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        *self.lock_last_error() = Some(error);
    }

    pub(super) fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Relaxed)
    }

    pub(super) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Returns the number of lists after the first.
    pub(super) fn relists(&self) -> u64 {
        self.lists.load(Ordering::Relaxed).saturating_sub(1)
    }

    pub(super) fn last_error(&self) -> Option<String> {
        self.lock_last_error().clone()
    }

    /// Logs that the watch has received no data for `limit`, once, and that it receives data again.
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

/// The last error of a watch that has had none.
pub(super) const NO_RESPONSE: &str = "no response from the API server yet";

/// The state of one watch at one moment, for people who look for the cause of a problem.
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
    /// `true` once the first list was delivered to all subscribers.
    pub(crate) synced: bool,
    /// Time since the watch received data, events and bookmarks alike, or since it started.
    pub(crate) since_contact: Duration,
    /// The last error, also if the watch has recovered from it.
    pub(crate) last_error: Option<String>,
    /// Number of objects of the watch in the cache.
    pub(crate) objects: usize,
    /// Number of lists after the first.
    pub(crate) relists: u64,
    /// Number of failed lists and watches.
    pub(crate) errors: u64,
}

impl WatchStatus {
    /// Returns what the states of several watches are ordered by.
    pub(super) fn order(&self) -> (&str, &str, &str, Option<&str>) {
        (
            &self.kind,
            self.content,
            &self.selection,
            self.namespace.as_deref(),
        )
    }

    /// Describes a watch that receives no data.
    pub(super) fn describe_staleness(&self) -> String {
        let (seconds, error) = (self.since_contact.as_secs(), self.last_error.as_deref());
        let error = error.unwrap_or(NO_RESPONSE);
        format!("no data from the watch of {self} for {seconds} s; last error: {error}")
    }
}

impl fmt::Display for WatchStatus {
    /// Writes the kind, and selection and namespace if there are any, such as `Secret in namespace shop`.
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
