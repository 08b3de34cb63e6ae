//! State that operators keep in memory and lose on a restart.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

#[derive(Default)]
pub(crate) struct Names(Mutex<HashSet<String>>);

impl Names {
    pub(crate) fn contains(&self, name: &str) -> bool {
        lock(&self.0).contains(name)
    }

    pub(crate) fn insert(&self, name: &str) {
        lock(&self.0).insert(name.to_owned());
    }

    /// Returns `false` if the name isn't in the set.
    pub(crate) fn remove(&self, name: &str) -> bool {
        lock(&self.0).remove(name)
    }

    pub(crate) fn remove_prefixed(&self, prefix: &str) {
        lock(&self.0).retain(|name| !name.starts_with(prefix));
    }
}

#[derive(Default)]
pub(crate) struct Times(Mutex<HashMap<String, Instant>>);

impl Times {
    /// Returns when [`first`](Self::first) was first called with this name.
    pub(crate) fn known(&self, name: &str) -> Option<Instant> {
        lock(&self.0).get(name).copied()
    }

    /// Returns when this was first called with this name.
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
