//! Objects created by this process, but not yet delivered by a watch.
//!
//! Watches can have gaps. If the resource version is too old (410 Gone), the watch has to relist,
//! and an object that was both created and deleted during the gap doesn't appear in any list. Its
//! deletion would be lost, and a controller might wait forever for a child that no longer exists.
//! For example:
//!
//! 1. The watch of ConfigMaps is at version 50 when its connection breaks.
//! 2. A reconcile creates the ConfigMap `c` at version 60. `c` is recorded here as unseen.
//! 3. Another client deletes `c` at version 61. The watch is still down.
//! 4. The watch resumes at version 50, gets 410 Gone, and relists. Before the list is requested,
//!    the keys of the unseen objects are saved: the list is expected to contain `c`.
//! 5. The list does not contain `c`, so a deletion of `c` is delivered and its owner is reconciled.
//!
//! Objects recorded after the list was requested aren't expected in it: at that point, an existing
//! object may be missing from the list.
//!
//! # How long objects are remembered
//!
//! An object is forgotten once its watch has decided about it. Versions are delivered in order:
//! once something newer than the creation arrives, the watch has either delivered the object or
//! never will, e.g. because a webhook or another writer removed it from the selection. A list
//! requested after the creation has the same effect.
//!
//! Objects in unwatched namespaces aren't recorded in the first place.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::hash::{HashMap, HashSet};
use crate::object::Key;

pub(super) struct UnseenObjects<K>(Mutex<HashMap<Key, Unseen<K>>>);

struct Unseen<K> {
    /// Resource version of the creation.
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

    /// Removes a delivered object, and all others that the watch has decided about.
    pub(super) fn settle(&self, key: &Key, is_undecided: impl Fn(&Key, u64) -> bool) {
        let mut unseen = self.lock();
        if !unseen.is_empty() {
            unseen.remove(key);
            unseen.retain(|key, object| is_undecided(key, object.version));
        }
    }

    pub(super) fn retain(&self, is_kept: impl Fn(&K) -> bool) {
        self.lock().retain(|_, unseen| is_kept(&unseen.object));
    }

    /// Any list requested from now on is expected to contain these objects.
    pub(super) fn keys(&self) -> HashSet<Key> {
        self.lock().keys().cloned().collect()
    }

    pub(super) fn take_missing(&self, expected: HashSet<Key>) -> Vec<Arc<K>> {
        let mut unseen = self.lock();
        let missing = expected.iter().filter_map(|key| unseen.remove(key));
        missing.map(|unseen| unseen.object).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Unseen<K>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
