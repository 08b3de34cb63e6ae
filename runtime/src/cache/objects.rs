//! What a cache holds: objects as its watch tells of them and, until the watch does, as this process wrote them.
//!
//! A watch lags behind what its own process writes. A reconcile that runs again before the watch has caught up would
//! find its own work undone, and do it once more. So what the API server answers to a write is held at once, where it
//! is newer than what the watch has told so far, and readers see it. Subscribers do not: they hear of each object what
//! the watch tells, in its order, and as the old object they see what they last heard of.
//!
//! A write may be held only if the watch is sure to tell of it or of something later: when the object's namespace is
//! watched, when no list is under way and none came between the write's request and its answer, and when the watch has
//! told nothing later yet. (Watches tell changes of one kind in the order of their resource versions.)

use std::collections::HashMap;
use std::sync::Arc;

use super::Index;
use crate::object::{Key, Watchable};

/// The objects and what finds them, which change together.
pub(super) struct Objects<K> {
    pub(super) by_key: HashMap<Key, Arc<K>>,
    pub(super) indexes: Vec<Index<K>>,
    /// What subscribers have last heard of the objects that are held as this process wrote them.
    told: HashMap<Key, Option<Arc<K>>>,
    scopes: Vec<Scope>,
    /// How many lists have begun.
    lists: u64,
}

/// What one watch follows: a namespace, or all of them.
struct Scope {
    namespace: Option<String>,
    listing: bool,
    /// The newest version it has told of.
    newest: u64,
}

/// Which of a cache's watches tells something.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScopeId(usize);

/// When a write began: after how many lists, unless one was under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Began {
    lists: Option<u64>,
}

impl<K> Default for Objects<K> {
    fn default() -> Self {
        Self {
            by_key: HashMap::new(),
            indexes: Vec::new(),
            told: HashMap::new(),
            scopes: Vec::new(),
            lists: 0,
        }
    }
}

impl<K: Watchable> Objects<K> {
    /// Adds a watch, which is taken to list first.
    pub(super) fn add_scope(&mut self, namespace: Option<String>) -> ScopeId {
        self.scopes.push(Scope {
            namespace,
            listing: true,
            newest: 0,
        });
        ScopeId(self.scopes.len() - 1)
    }

    pub(super) fn list_begins(&mut self, scope: ScopeId) {
        self.lists += 1;
        self.scopes[scope.0].listing = true;
        self.scopes[scope.0].newest = 0;
    }

    pub(super) fn list_ends(&mut self, scope: ScopeId) {
        self.scopes[scope.0].listing = false;
    }

    /// Holds an object as a watch tells of it; what subscribers have last heard of it.
    pub(super) fn put(&mut self, scope: Option<ScopeId>, key: Key, object: &Arc<K>) -> Option<Arc<K>> {
        let (version, listing) = (version(&**object), self.note(scope, version(&**object)));
        if self.told.is_empty() {
            return self.insert(key, object);
        }
        match self.told.remove(&key) {
            Some(told) if !listing && self.is_held_later_than(&key, version) => {
                self.told.insert(key, Some(Arc::clone(object)));
                told
            }
            Some(told) => {
                self.insert(key, object);
                told
            }
            None => self.insert(key, object),
        }
    }

    /// Lets go of an object that was deleted, in this version where it is known; what subscribers have last heard of it.
    pub(super) fn delete(
        &mut self,
        scope: Option<ScopeId>,
        key: &Key,
        version: Option<u64>,
    ) -> Option<Arc<K>> {
        self.note(scope, version);
        match self.told.remove(key) {
            // It was made anew.
            Some(told) if self.is_held_later_than(key, version) => {
                self.told.insert(key.clone(), None);
                told
            }
            // Of what this process made and nobody heard of yet, they hear that it is gone: its owner may wait for it.
            Some(told) => told.or(self.remove(key)),
            None => self.remove(key),
        }
    }

    pub(super) fn begin_write(&self) -> Began {
        let quiet = self.scopes.iter().all(|scope| !scope.listing);
        Began {
            lists: quiet.then_some(self.lists),
        }
    }

    /// Holds an object as this process wrote it, unless it is not sure that the watch will tell of it. Where a
    /// selection may leave it out, it is held only if it is there already.
    pub(super) fn put_own(&mut self, began: Began, object: K, is_selected: bool) {
        let Some(version) = version(&object) else {
            return;
        };
        let key = Key::of(&object);
        let covers = |scope: &&Scope| {
            scope.namespace.is_none() || scope.namespace.as_deref() == key.namespace.as_deref()
        };
        let will_be_told =
            self.scopes.iter().find(covers).is_some_and(|scope| {
                !scope.listing && began.lists == Some(self.lists) && version > scope.newest
            });
        let present = self.by_key.get(&key);
        let is_newer =
            present.is_none_or(|present| self::version(&**present).is_some_and(|held| held < version));
        if will_be_told && is_newer && (is_selected || present.is_some()) {
            let before = self.insert(key.clone(), &Arc::new(object));
            self.told.entry(key).or_insert(before);
        }
    }

    /// Notes how far a watch has come; whether it is listing.
    fn note(&mut self, scope: Option<ScopeId>, version: Option<u64>) -> bool {
        let Some(scope) = scope.and_then(|scope| self.scopes.get_mut(scope.0)) else {
            return false;
        };
        scope.newest = scope.newest.max(version.unwrap_or_default());
        scope.listing
    }

    fn is_held_later_than(&self, key: &Key, version: Option<u64>) -> bool {
        let held = self.by_key.get(key).and_then(|held| self::version(&**held));
        held.zip(version).is_some_and(|(held, version)| held > version)
    }

    fn insert(&mut self, key: Key, object: &Arc<K>) -> Option<Arc<K>> {
        for index in &mut self.indexes {
            index.insert(&key, object);
        }
        self.by_key.insert(key, Arc::clone(object))
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<K>> {
        for index in &mut self.indexes {
            index.remove(key);
        }
        self.by_key.remove(key)
    }
}

/// The resource version as a number, which all have that the API server itself stores.
///
/// They are [ordered](https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions) within a kind.
pub(super) fn version<K: Watchable>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}
