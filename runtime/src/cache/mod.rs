//! Caches: what the API server holds of a kind, kept in memory by one watch, and who wants to hear of changes.
//!
//! A manager has one cache for each kind and [`Selection`] of objects, however many controllers look at it. A cache
//! keeps the objects itself rather than in kube's `Store`, because its subscribers see the old object beside the
//! new one, because its indexes change in the same moment as the objects, and because a store that is listed
//! anew keeps every object twice for a while.

mod cached;
mod decode;
mod follow;
mod index;
mod objects;
mod own;
mod registry;
mod selection;
#[cfg(test)]
mod tests;
mod written;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;

use crate::object::{Key, Kind, Watchable};

pub use cached::Cached;
pub(crate) use decode::Lean;
pub(crate) use index::Index;
use objects::{Objects, ScopeId};
pub(crate) use own::Writing;
pub(crate) use registry::{CacheId, Caches, NamedWatch};
pub use selection::Selection;
pub(crate) use selection::Trim;
use written::Written;

/// What happened to an object, as the watch of its kind tells it.
#[derive(Clone, Debug)]
pub enum Change<K> {
    /// The object was created or changed, or was there already when the watch began.
    Applied {
        /// The object before the change; nothing when it is new to the cache.
        old: Option<Arc<K>>,
        /// The object as it is now.
        new: Arc<K>,
        /// Whether the object was there before the cache was: nobody just touched it.
        initial: bool,
    },
    /// The object is gone; this is what was last seen of it.
    Deleted(Arc<K>),
}

impl<K> Change<K> {
    /// The object: as it is, or as it last was.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Applied { new, .. } => new,
            Self::Deleted(old) => old,
        }
    }
}

/// Hears of each change, in order, before the next one is read; it must not block.
pub(crate) type Handler<K> = Box<dyn Fn(&Change<K>) + Send + Sync>;

/// The objects of one kind that a selection chooses.
pub(crate) struct Cache<K: Watchable> {
    kind: Kind<K>,
    selection: Selection,
    trim: Trim,
    objects: RwLock<Objects<K>>,
    handlers: RwLock<Vec<Handler<K>>>,
    written: Written<K>,
    /// How many watches have not delivered their first list yet.
    unsynced: AtomicUsize,
    synced: watch::Sender<bool>,
    last_error: Mutex<String>,
}

impl<K: Watchable> Cache<K> {
    pub(crate) fn new(kind: Kind<K>, selection: Selection, trim: Trim) -> Self {
        Self {
            kind,
            selection,
            trim,
            objects: RwLock::default(),
            handlers: RwLock::default(),
            written: Written::default(),
            unsynced: AtomicUsize::new(0),
            synced: watch::channel(false).0,
            last_error: Mutex::new("no response from the API server yet".to_owned()),
        }
    }

    pub(crate) fn kind(&self) -> &Kind<K> {
        &self.kind
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.read().by_key.get(key).cloned()
    }

    /// The keys of all objects, in no order.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.read().by_key.keys().cloned().collect()
    }

    /// Adds a handler, which first hears of each object that is there already, as an initial one.
    pub(crate) fn subscribe(&self, handler: Handler<K>) {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        // While the lock is held no change is told, so the handler misses none; one that has just been made may
        // reach it twice, the second time as a change.
        let present: Vec<Arc<K>> = self.read().by_key.values().cloned().collect();
        for new in present {
            handler(&Change::Applied {
                old: None,
                new,
                initial: true,
            });
        }
        handlers.push(handler);
    }

    /// Adds an index; one of this name that is there already stays.
    pub(crate) fn add_index(&self, mut index: Index<K>) {
        let mut objects = self.write();
        if objects
            .indexes
            .iter()
            .any(|present| present.name() == index.name())
        {
            return;
        }
        for (key, object) in &objects.by_key {
            index.insert(key, object);
        }
        objects.indexes.push(index);
    }

    /// Holds an object as if it had been watched.
    pub(crate) fn put(&self, object: K) {
        self.apply(None, object, true);
    }

    /// Remembers an object that this process wrote until the watch tells of it: should it be gone before that, its
    /// deletion is told all the same.
    pub(crate) fn wrote(&self, mut object: K) {
        let key = Key::of(&object);
        if self.get(&key).is_none() {
            self.trim.apply(object.meta_mut());
            self.written.insert(key, object);
        }
    }

    fn apply(&self, scope: Option<ScopeId>, mut object: K, initial: bool) {
        self.trim.apply(object.meta_mut());
        let (key, new) = (Key::of(&object), Arc::new(object));
        self.written.seen(&key);
        let old = self.write().put(scope, key, &new);
        let unchanged = old.as_ref().is_some_and(|old| {
            old.meta().resource_version == new.meta().resource_version && old.meta().uid == new.meta().uid
        });
        if !unchanged {
            self.tell(&Change::Applied { old, new, initial });
        }
    }

    fn delete(&self, scope: Option<ScopeId>, key: &Key, version: Option<u64>) {
        self.written.seen(key);
        let old = self.write().delete(scope, key, version);
        if let Some(old) = old {
            self.tell(&Change::Deleted(old));
        }
    }

    /// Deletes what a new list of `namespace` (`None`: all of them) no longer has. `expected` are the objects that
    /// were written and not seen when the list was asked for.
    fn keep_only(&self, namespace: Option<&str>, seen: &HashSet<Key>, expected: HashSet<Key>) {
        let listed = |key: &&Key| namespace.is_none() || key.namespace.as_deref() == namespace;
        let gone: Vec<Key> = {
            let objects = self.read();
            let keys = objects.by_key.keys().filter(listed);
            keys.filter(|key| !seen.contains(*key)).cloned().collect()
        };
        for key in gone {
            self.delete(None, &key, None);
        }
        let expected = expected.into_iter().filter(|key| listed(&key)).collect();
        for object in self.written.missing(expected) {
            self.tell(&Change::Deleted(object));
        }
    }

    fn tell(&self, change: &Change<K>) {
        let handlers = self.handlers.read().unwrap_or_else(PoisonError::into_inner);
        for handler in handlers.iter() {
            handler(change);
        }
    }

    /// Whether the first list has been told to all subscribers.
    pub(crate) fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Resolves when the first list has been told to all subscribers.
    pub(crate) async fn synced(&self) {
        // The sender lives in the cache, so the wait cannot fail.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Takes the cache for filled, although no watch fills it.
    pub(crate) fn assume_synced(&self) {
        self.synced.send_replace(true);
    }

    /// What the watch ran into last.
    pub(crate) fn last_error(&self) -> String {
        let error = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        error.clone()
    }

    fn scope_synced(&self) {
        if self.unsynced.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.synced.send_replace(true);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Objects<K>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Objects<K>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}
