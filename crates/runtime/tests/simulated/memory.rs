//! What operators keep in the memory of their process, which a restart loses.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// Names of objects.
#[derive(Default)]
pub(crate) struct Names(Mutex<HashSet<String>>);

impl Names {
    pub(crate) fn contains(&self, name: &str) -> bool {
        lock(&self.0).contains(name)
    }

    pub(crate) fn insert(&self, name: &str) {
        lock(&self.0).insert(name.to_owned());
    }

    /// Removes a name. Returns `false` if it was not there.
    pub(crate) fn remove(&self, name: &str) -> bool {
        lock(&self.0).remove(name)
    }

    /// Removes all names that begin with `prefix`.
    pub(crate) fn remove_prefixed(&self, prefix: &str) {
        lock(&self.0).retain(|name| !name.starts_with(prefix));
    }
}

/// When something was seen for the first time.
#[derive(Default)]
pub(crate) struct Times(Mutex<HashMap<String, Instant>>);

impl Times {
    /// Returns when [`first`](Self::first) was called for this name.
    pub(crate) fn known(&self, name: &str) -> Option<Instant> {
        lock(&self.0).get(name).copied()
    }

    /// Returns the time of the first call for this name.
    pub(crate) fn first(&self, name: &str) -> Instant {
        *lock(&self.0).entry(name.to_owned()).or_insert_with(Instant::now)
    }

    pub(crate) fn forget(&self, name: &str) {
        lock(&self.0).remove(name);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
