//! Objects created by this process that its watch has not delivered yet.
//!
//! A watch can have gaps: when its resource version is too old (410 Gone), it lists all objects
//! again. An object created and deleted within a gap appears in no list. Its deletion would be
//! lost, and a controller would wait forever for a child that no longer exists. For example:
//!
//! 1. The watch of ConfigMaps is at version 50 when its connection breaks.
//! 2. A reconcile creates the ConfigMap `c` at version 60. `c` is recorded here as unseen.
//! 3. Somebody deletes `c` at version 61. The watch is still down.
//! 4. The watch resumes at version 50, gets 410 Gone, and relists. Before the list is requested,
//!    the keys of the unseen objects are saved: the list is expected to contain `c`.
//! 5. The list does not contain `c`, so a deletion of `c` is delivered and its owner is reconciled.
//!
//! Objects recorded after the list was requested are not expected in it: if created at that moment,
//! they may be missing from the list although they exist.
//!
//! # How long objects are remembered
//! An object stays until its watch has decided about it. A watch delivers versions in order. Once
//! it has delivered a version newer than the creation, it has either delivered the object or never
//! will, because a webhook or another writer may have removed the object from the selection. A list
//! that was requested after the creation decides as well. Objects in namespaces that are not
//! watched are not recorded at all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::hash::{HashMap, HashSet};
use crate::object::Key;

/// Created objects that the watch has not delivered yet, by key.
pub(super) struct UnseenObjects<K>(Mutex<HashMap<Key, Unseen<K>>>);

struct Unseen<K> {
    /// The resource version of the creation.
    version: u64,
    object: Arc<K>,
}

impl<K> Default for UnseenObjects<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K> UnseenObjects<K> {
    pub(super) fn insert(&self, key: Key, version: u64, object: K) {
        let object = Arc::new(object);
        self.lock().insert(key, Unseen { version, object });
    }

    /// Removes an object that the watch has delivered, and all objects that the watch has thereby
    /// decided about.
    pub(super) fn settle(&self, key: &Key, is_undecided: impl Fn(&Key, u64) -> bool) {
        let mut unseen = self.lock();
        if !unseen.is_empty() {
            unseen.remove(key);
            unseen.retain(|key, object| is_undecided(key, object.version));
        }
    }

    /// Removes the objects for which `is_kept` returns `false`.
    pub(super) fn retain(&self, is_kept: impl Fn(&K) -> bool) {
        self.lock().retain(|_, unseen| is_kept(&unseen.object));
    }

    /// Returns the keys of the unseen objects. A list requested from now on must contain them.
    pub(super) fn keys(&self) -> HashSet<Key> {
        self.lock().keys().cloned().collect()
    }

    /// Removes and returns the expected objects that are still unseen.
    pub(super) fn take_missing(&self, expected: HashSet<Key>) -> Vec<Arc<K>> {
        let mut unseen = self.lock();
        let missing = expected.iter().filter_map(|key| unseen.remove(key));
        missing.map(|unseen| unseen.object).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Unseen<K>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
