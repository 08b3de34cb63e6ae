//! Objects created by this process that its watch has not delivered yet.
//!
//! A watch can have gaps: when its resource version is too old (410 Gone), all objects are listed again. An object
//! created and deleted within a gap is in no list, so its deletion would be lost, and a controller would wait forever for
//! a child that no longer exists. For example:
//!
//! 1. The watch of ConfigMaps is at version 50 when its connection breaks.
//! 2. A reconcile creates the ConfigMap `c` at version 60. `c` is recorded here as unseen.
//! 3. Somebody deletes `c` at version 61. The watch is still down.
//! 4. The watch resumes at version 50, gets 410 Gone, and relists. The keys of the unseen objects are noted before the
//!    list is requested: `c` is expected in it.
//! 5. The list does not contain `c`, so a deletion of `c` is delivered, and its owner is reconciled.
//!
//! Keys recorded after the list was requested are not expected in it: an object created at that moment may be missing
//! from the list although it exists.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::object::Key;

/// Created objects by key that the watch has not delivered.
pub(super) struct UnseenObjects<K>(Mutex<HashMap<Key, Arc<K>>>);

impl<K> Default for UnseenObjects<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K> UnseenObjects<K> {
    pub(super) fn insert(&self, key: Key, object: K) {
        self.lock().insert(key, Arc::new(object));
    }

    /// Removes an object that the watch has delivered.
    pub(super) fn mark_seen(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// Returns the keys of the unseen objects, which a list requested from now on must contain.
    pub(super) fn keys(&self) -> HashSet<Key> {
        self.lock().keys().cloned().collect()
    }

    /// Removes and returns the expected objects that are still unseen.
    pub(super) fn take_missing(&self, expected: HashSet<Key>) -> Vec<Arc<K>> {
        let mut unseen = self.lock();
        expected.iter().filter_map(|key| unseen.remove(key)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<K>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
