//! What this process wrote and its watch has not told of yet.
//!
//! A watch may have gaps: when the API server no longer has what lies between the version that the watch knows and
//! now, everything is listed anew. An object that came and went in such a gap leaves no trace in the list, so nobody
//! would hear of its deletion: a controller that has just made a child would never learn that it is gone. What was
//! written is therefore remembered until the watch shows it, and what a list should show and does not counts as
//! deleted.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::object::Key;

/// Objects by key that were written and not yet seen.
pub(super) struct Written<K>(Mutex<HashMap<Key, Arc<K>>>);

impl<K> Default for Written<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K> Written<K> {
    pub(super) fn insert(&self, key: Key, object: K) {
        self.lock().insert(key, Arc::new(object));
    }

    /// The watch has told of the object.
    pub(super) fn seen(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// The keys that a list must show if it is asked for from now on.
    pub(super) fn expected(&self) -> HashSet<Key> {
        self.lock().keys().cloned().collect()
    }

    /// Takes out what was expected of a list and not seen.
    pub(super) fn missing(&self, expected: HashSet<Key>) -> Vec<Arc<K>> {
        let mut written = self.lock();
        expected.iter().filter_map(|key| written.remove(key)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<K>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
