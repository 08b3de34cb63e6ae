//! The objects in a cache. Most were delivered by a watch; some are ahead of it, because this
//! process has written them.
//!
//! A watch always lags behind the writes of its own process. If an object were reconciled again
//! before the watch has caught up, the reconciler would not observe its own writes and would repeat
//! them, e.g. create a second child or increment a counter in the status twice. To prevent that, we
//! immediately store the object that the API server returns for a write, so that *readers* observe
//! it. *Subscribers* do not. They receive exactly the watch's events, in order, and the old object
//! in an event is always the new one of the preceding event.
//!
//! # Example: an update
//!
//! The Deployment `web` is cached at version 5; all controllers have received version 5.
//!
//! | step | what happens | readers see | subscribers receive |
//! |---|---|---|---|
//! | 1 | a reconcile applies `web`; the server returns version 9 | 9 | |
//! | 2 | the watch delivers version 7, from another writer before ours | 9 | 5 → 7 |
//! | 3 | the watch delivers version 9 | 9 | 7 → 9 |
//! | 4 | the watch delivers version 11 | 11 | 9 → 11 |
//!
//! Storing the write isn't enough. In step 2, the older event would overwrite the newer object, and
//! readers would see our write undone. And if there were no other writers, step 3 would replace 9
//! with 9. That's not a change, so controllers watching `web` would never be notified. Hence
//! `delivered`: for each object that is stored ahead of the watch, it contains the version that
//! subscribers last received. Events older than the stored object only update `delivered`.
//!
//! # Example: a creation that must not be stored
//!
//! A write may only be stored if the watch is going to deliver it, or something newer. Otherwise
//! the object could stay in the cache forever.
//!
//! 1. A reconcile sends a create of `c`. Meanwhile the watch gets 410 Gone and starts to relist.
//! 2. The server creates `c` at version 60, and another client deletes it at version 61.
//! 3. The list is taken at version 62, without `c`. The watch will only deliver events after 62.
//! 4. The response to the create arrives: `c` at version 60. If we stored it now, it would stay in
//!    the cache forever.
//!
//! [`WriteStart`] records the (logical) time at which the request is sent.
//! [`put_own_write`](Objects::put_own_write) uses this to drop the object in any of these cases:
//!
//! - The watch of its namespace is currently listing, or has listed since the request was sent.
//!   Lists of other namespaces do not matter.
//! - Its namespace is not watched at all.
//! - A selector may exclude the object, and it is not in the cache yet.
//! - The watch has delivered a newer version of *any* object. Events are ordered by resource
//!   version, so the watch is already past our write.
//!
//! # Example: a deletion
//!
//! A reconcile deletes the Job `j`, which is cached at version 5 with UID `u`. The response only
//! says that `j` is gone; there is no resource version to compare events with.
//!
//! | step | what happens | readers see | subscribers receive |
//! |---|---|---|---|
//! | 1 | the server responds that `j` is gone | nothing | |
//! | 2 | the watch delivers version 7, from another writer before the deletion | nothing | 5 → 7 |
//! | 3 | the watch delivers the deletion | nothing | 7 → deleted |
//!
//! Instead, the UID determines which events precede the deletion, since a recreated object has a
//! different one. Between steps 1 and 3, `deleted` contains `u`. An object with this UID stays
//! hidden, unless it appears in a list.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::core::ObjectMeta;

use super::by_namespace::ByNamespace;
use super::copies::Copies;
use super::health::WatchHealth;
use super::index::IndexedKeys;
use super::stored::{Form, Stored};
use crate::hash::{HashMap, HashSet};
use crate::object::{Key, Undecodable, Watchable};

/// A cache's objects and their indexes, which are always updated together.
///
/// A single lock guards this, and all readers contend for it. Hence nothing in here decodes objects
/// or calls user functions. Objects arrive packed, with precomputed index values, and are returned
/// as copies of their packed form.
pub(super) struct Objects<K> {
    pub(super) by_key: ByNamespace<Stored<K>>,
    /// Total size of the objects in `by_key`, in bytes of JSON.
    bytes: u64,
    /// Objects that can't be decoded. These keys do not occur in `by_key`.
    pub(super) undecodable: HashMap<Key, Arc<UndecodableEntry>>,
    pub(super) indexes: Vec<IndexedKeys>,
    /// For each object that is stored ahead of the watch: the version last delivered to
    /// subscribers, if any.
    delivered: HashMap<Key, Option<Form<K>>>,
    /// UIDs of objects deleted by this process, until the watch delivers the deletion. All of these
    /// keys occur in `delivered`, and none in `by_key`.
    deleted: HashMap<Key, String>,
    watches: Vec<WatchState>,
    /// Number of lists started so far, by all watches.
    lists: u64,
    now: Tick,
}

#[derive(Debug)]
pub(crate) struct UndecodableEntry {
    pub(crate) object: Undecodable,
    /// Set if the previous version had the same error, which was logged then.
    repeated: bool,
    /// Whether a Kubernetes event about this was already recorded.
    recorded: AtomicBool,
}

impl UndecodableEntry {
    fn after(before: Option<&Self>, object: Undecodable) -> Self {
        let same = before.filter(|before| before.object.has_reason_of(&object));
        let recorded = same.is_some_and(|before| before.recorded.load(Ordering::Relaxed));
        Self {
            object,
            repeated: same.is_some(),
            recorded: AtomicBool::new(recorded),
        }
    }

    pub(super) fn is_first_of_reason(&self) -> bool {
        !self.repeated
    }

    /// Returns `true` to the first caller only, who must then record a Kubernetes event.
    pub(crate) fn claim_event(&self) -> bool {
        !self.recorded.swap(true, Ordering::Relaxed)
    }

    fn version(&self) -> Option<u64> {
        resource_version(self.object.metadata())
    }
}

pub(super) struct NewObject<K> {
    pub(super) form: Form<K>,
    /// Serialized size of the object, in bytes of JSON.
    pub(super) bytes: u32,
    /// In the same order as `Objects::indexes`.
    pub(super) values: Vec<Vec<String>>,
}

/// An object removed from a cache, in the version known to subscribers.
pub(super) enum Deleted<K> {
    Object(Form<K>),
    Undecodable(Arc<UndecodableEntry>),
}

struct WatchState {
    namespace: Option<String>,
    /// When the last list was completed, or `None` while listing.
    listed: Option<Tick>,
    /// Sequence number of the last list, shared by all watches.
    list: u32,
    /// Newest resource version seen since the start of the last list.
    newest: u64,
    /// Newest resource version seen since the watch was added.
    passed: u64,
    health: Arc<WatchHealth>,
}

impl WatchState {
    /// An object in a watched namespace is only delivered if it's also selected.
    fn covers(&self, key: &Key) -> bool {
        self.namespace.is_none() || self.namespace.as_deref() == key.namespace.as_deref()
    }
}

/// Logical time. Advances at the start and at the end of each list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Tick(u64);

#[derive(Clone, Copy, Debug)]
pub(super) struct WatchId(usize);

/// Logical time at which a write request was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteStart(Tick);

impl<K> Default for Objects<K> {
    fn default() -> Self {
        Self {
            by_key: ByNamespace::default(),
            bytes: 0,
            undecodable: HashMap::default(),
            indexes: Vec::new(),
            delivered: HashMap::default(),
            deleted: HashMap::default(),
            watches: Vec::new(),
            lists: 0,
            now: Tick::default(),
        }
    }
}

impl<K: Watchable> Objects<K> {
    pub(super) fn add_watch(&mut self, namespace: Option<String>) -> WatchId {
        self.watches.push(WatchState {
            health: Arc::new(WatchHealth::new(namespace.clone())),
            namespace,
            listed: None,
            list: 0,
            newest: 0,
            passed: 0,
        });
        WatchId(self.watches.len() - 1)
    }

    pub(super) fn begin_list(&mut self, watch: WatchId) {
        self.lists += 1;
        self.now.0 += 1;
        let state = &mut self.watches[watch.0];
        state.health.note_list();
        state.listed = None;
        state.list = u32::try_from(self.lists).unwrap_or(u32::MAX);
        state.newest = 0;
    }

    pub(super) fn end_list(&mut self, watch: WatchId) {
        self.now.0 += 1;
        self.watches[watch.0].listed = Some(self.now);
    }

    /// Returns the keys of all objects in `namespace` (or in all namespaces) that were missing from
    /// the last list.
    pub(super) fn unlisted(&self, watch: WatchId, namespace: Option<&str>) -> Vec<Key> {
        let list = self.watches[watch.0].list;
        // Every object stores the number of the list that it came from. Collecting a list's keys in
        // a set would be simpler, but the set would take as much memory as the keys in the cache,
        // and fragment the heap.
        self.by_key.keys_where(namespace, |stored| stored.list < list)
    }

    /// Stores an object from a watch. Returns the version known to subscribers.
    pub(super) fn put(
        &mut self,
        watch: Option<WatchId>,
        key: Key,
        meta: &ObjectMeta,
        new: NewObject<K>,
    ) -> Option<Form<K>> {
        let version = resource_version(meta);
        let listing = self.record_progress(watch, version);
        let list = watch.and_then(|watch| self.watches.get(watch.0));
        let list = list.map_or(0, |state| state.list);
        // Fast path: without recent writes of our own, nothing is ahead of the watch.
        if self.delivered.is_empty() {
            return self.insert(key, new, list);
        }
        // Objects in a list are always stored.
        let is_outdated = !listing && (self.is_deleted(&key, meta) || self.has_newer(&key, version));
        match self.delivered.remove(&key) {
            // The watch has not caught up with our write yet, so only subscribers get this version.
            Some(delivered) if is_outdated => {
                self.delivered.insert(key, Some(new.form));
                delivered
            }
            // The watch has caught up.
            Some(delivered) => {
                self.insert(key, new, list);
                delivered
            }
            None => self.insert(key, new, list),
        }
    }

    /// Stores an undecodable object from a watch, replacing any older version.
    ///
    /// Returns the version known to subscribers along with the new entry, or `None` if nothing has
    /// changed. The latter includes the case that the cache contains a newer write of this process.
    pub(super) fn put_undecodable(
        &mut self,
        watch: Option<WatchId>,
        key: &Key,
        object: Undecodable,
    ) -> Option<(Option<Form<K>>, Arc<UndecodableEntry>)> {
        let version = resource_version(object.metadata());
        let listing = self.record_progress(watch, version);
        if !listing && self.delivered.contains_key(key) && self.has_newer(key, version) {
            return None;
        }
        let before = self.undecodable.get(key).map(Arc::as_ref);
        if before.is_some_and(|before| before.version() == version && version.is_some()) {
            return None;
        }
        let entry = Arc::new(UndecodableEntry::after(before, object));
        let stored = self.remove(key);
        self.deleted.remove(key);
        let old = self.delivered.remove(key).unwrap_or(stored);
        self.undecodable.insert(key.clone(), Arc::clone(&entry));
        Some((old, entry))
    }

    /// Removes an object deleted at `version`. Returns the version known to subscribers.
    pub(super) fn delete(
        &mut self,
        watch: Option<WatchId>,
        key: &Key,
        version: Option<u64>,
    ) -> Option<Deleted<K>> {
        self.record_progress(watch, version);
        self.deleted.remove(key);
        if let Some(undecodable) = self.undecodable.remove(key) {
            return Some(Deleted::Undecodable(undecodable));
        }
        let known = match self.delivered.remove(key) {
            // The object was recreated by this process.
            Some(delivered) if self.has_newer(key, version) => {
                self.delivered.insert(key.clone(), None);
                delivered
            }
            // Subscribers may never have seen an object that this process created. Deliver its
            // deletion nevertheless, because the owner may be waiting for it.
            Some(delivered) => delivered.or(self.remove(key)),
            None => self.remove(key),
        };
        known.map(Deleted::Object)
    }

    pub(super) fn begin_write(&self) -> WriteStart {
        WriteStart(self.now)
    }

    /// Stores an object written by this process, unless the watch might not deliver it (see the
    /// module documentation).
    ///
    /// If `is_selected` is `false`, a selector may exclude the object, so it's only stored if it's
    /// already in the cache.
    pub(super) fn put_own_write(
        &mut self,
        start: WriteStart,
        meta: &ObjectMeta,
        mut new: NewObject<K>,
        is_selected: bool,
    ) {
        // Without a numeric version, we can't tell what the watch has already delivered.
        let Some(version) = resource_version(meta) else {
            return;
        };
        let key = Key::of_meta(meta);
        // A late response to a write from before our own deletion.
        if self.is_deleted(&key, meta) {
            return;
        }
        let will_be_delivered = self
            .find_current_watch(start, &key)
            .is_some_and(|watch| version > watch.newest);
        let stored = self.by_key.get(&key).map(|_| self.version(&key));
        let undecodable = self.undecodable.get(&key).map(|stored| stored.version());
        let stored = stored.or(undecodable);
        let is_newer = stored.is_none_or(|stored| stored.is_some_and(|stored| stored < version));
        if will_be_delivered && is_newer && (is_selected || stored.is_some()) {
            new.bytes = self.by_key.get(&key).map_or(0, |stored| stored.bytes);
            let before = self.insert(key.clone(), new, 0);
            // Subscribers still have the version from before our first write.
            self.delivered.entry(key).or_insert(before);
        }
    }

    /// Hides an object deleted by this process until the watch delivers the deletion. No-op if the
    /// watch already did, or if a list since then might have contained the object.
    pub(super) fn put_own_deletion(&mut self, start: WriteStart, key: &Key, uid: &str) {
        let is_stored = self.form(key).is_some_and(|form| form.has_uid(&key.name, uid));
        if is_stored && self.find_current_watch(start, key).is_some() {
            let before = self.remove(key);
            self.delivered.entry(key.clone()).or_insert(before);
            self.deleted.insert(key.clone(), uid.to_owned());
        }
    }

    pub(super) fn own_deletions(&self) -> impl Iterator<Item = &Key> {
        self.deleted.keys()
    }

    fn is_deleted(&self, key: &Key, meta: &ObjectMeta) -> bool {
        !self.deleted.is_empty() && self.deleted.get(key) == meta.uid.as_ref() && meta.uid.is_some()
    }

    /// Finds the watch that covers an object, unless it has listed since the write started.
    fn find_current_watch(&self, WriteStart(start): WriteStart, key: &Key) -> Option<&WatchState> {
        let watch = self.find_watch(key)?;
        watch.listed.filter(|listed| *listed <= start)?;
        Some(watch)
    }

    /// Finds the watch that delivers an object, assuming that the object is selected.
    fn find_watch(&self, key: &Key) -> Option<&WatchState> {
        self.watches.iter().find(|watch| watch.covers(key))
    }

    pub(super) fn is_watched(&self) -> bool {
        !self.watches.is_empty()
    }

    /// Returns the newest resource version delivered by the object's watch, or `None` until its
    /// initial list is complete.
    pub(super) fn passed(&self, key: &Key) -> Option<u64> {
        let watch = self.find_watch(key)?;
        watch.health.is_synced().then_some(watch.passed)
    }

    /// Returns `true` if the object's watch, or a list in progress, may still deliver this version.
    pub(super) fn is_undecided(&self, key: &Key, version: u64) -> bool {
        let watch = self.find_watch(key);
        watch.is_some_and(|watch| watch.listed.is_none() || watch.newest < version)
    }

    /// Records the newest version that a watch has delivered. Returns `true` if the watch is
    /// listing.
    fn record_progress(&mut self, watch: Option<WatchId>, version: Option<u64>) -> bool {
        let Some(watch) = watch.and_then(|watch| self.watches.get_mut(watch.0)) else {
            return false;
        };
        watch.newest = watch.newest.max(version.unwrap_or_default());
        watch.passed = watch.passed.max(watch.newest);
        watch.listed.is_none()
    }

    fn has_newer(&self, key: &Key, version: Option<u64>) -> bool {
        self.version(key)
            .zip(version)
            .is_some_and(|(stored, version)| stored > version)
    }

    fn insert(&mut self, key: Key, new: NewObject<K>, list: u32) -> Option<Form<K>> {
        let NewObject { form, bytes, values } = new;
        for (index, values) in self.indexes.iter_mut().zip(values) {
            index.insert(&key, values);
        }
        self.undecodable.remove(&key);
        self.deleted.remove(&key);
        self.bytes += u64::from(bytes);
        let before = self.by_key.insert(key, Stored { form, bytes, list })?;
        self.bytes -= u64::from(before.bytes);
        Some(before.form)
    }

    fn remove(&mut self, key: &Key) -> Option<Form<K>> {
        for index in &mut self.indexes {
            index.remove(key);
        }
        let removed = self.by_key.remove(key)?;
        self.bytes -= u64::from(removed.bytes);
        Some(removed.form)
    }

    /// Returns all known keys in a namespace (or in all namespaces), including undecodable objects
    /// and objects that only subscribers know about.
    pub(super) fn all_keys(&self, namespace: Option<&str>) -> HashSet<Key> {
        let in_namespace = |key: &&Key| namespace.is_none() || key.namespace.as_deref() == namespace;
        let other = self
            .undecodable
            .keys()
            .chain(self.delivered.keys())
            .filter(in_namespace);
        self.by_key
            .keys(namespace)
            .into_iter()
            .chain(other.cloned())
            .collect()
    }

    /// Falls back to the version known to subscribers if the object isn't stored.
    pub(super) fn known_form(&self, key: &Key) -> Option<Form<K>> {
        let delivered = self.delivered.get(key).and_then(Option::as_ref);
        self.form(key).or(delivered).cloned()
    }

    pub(super) fn has_uid(&self, key: &Key, uid: &str) -> bool {
        let undecodable = self
            .undecodable
            .get(key)
            .and_then(|entry| entry.object.metadata().uid.as_deref());
        undecodable == Some(uid) || self.form(key).is_some_and(|form| form.has_uid(&key.name, uid))
    }

    /// Drops an object that still exists in the cluster but is no longer relevant for this process.
    pub(super) fn forget(&mut self, key: &Key) {
        self.remove(key);
        self.undecodable.remove(key);
        self.delivered.remove(key);
        self.deleted.remove(key);
    }

    pub(super) fn form(&self, key: &Key) -> Option<&Form<K>> {
        self.by_key.get(key).map(|stored| &stored.form)
    }

    pub(super) fn copy(&self, namespace: Option<&str>) -> Copies<K> {
        let mut copies = Copies::with_capacity(self.len_in(namespace));
        match namespace {
            Some(only) => {
                let stored = self.by_key.in_namespace(only);
                stored.for_each(|(name, stored)| copies.push(namespace, name, &stored.form));
            }
            None => {
                let stored = self.by_key.iter();
                stored.for_each(|(namespace, name, stored)| copies.push(namespace, name, &stored.form));
            }
        }
        copies
    }

    /// Copies the objects with the given keys, in order. Skips keys that aren't stored.
    pub(super) fn copy_keys<'a>(&self, keys: impl Iterator<Item = &'a Key>) -> Copies<K> {
        let mut copies = Copies::with_capacity(0);
        for key in keys {
            if let Some(form) = self.form(key) {
                copies.push(key.namespace.as_deref(), &key.name, form);
            }
        }
        copies
    }

    pub(super) fn version_of<'a>(&'a self, key: &'a Key) -> Option<&'a str> {
        self.form(key)?.resource_version(&key.name)
    }

    fn version(&self, key: &Key) -> Option<u64> {
        self.version_of(key)?.parse().ok()
    }

    /// Returns the total size of all objects: the number of bytes of JSON received.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn health(&self, watch: WatchId) -> &Arc<WatchHealth> {
        &self.watches[watch.0].health
    }

    pub(super) fn watches(&self) -> impl Iterator<Item = &Arc<WatchHealth>> {
        self.watches.iter().map(|watch| &watch.health)
    }

    pub(super) fn len_in(&self, namespace: Option<&str>) -> usize {
        match namespace {
            Some(namespace) => self.by_key.in_namespace(namespace).count(),
            None => self.by_key.len(),
        }
    }

    /// Number of our own writes that no watch has delivered yet.
    pub(super) fn own_writes(&self) -> usize {
        self.delivered.len()
    }
}

/// Parses a resource version.
///
/// Resource versions are numbers for everything that kube-apiserver itself stores, and are
/// [ordered](https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions) within
/// a kind. Aggregated API servers may use other formats, for which this returns `None`.
pub(super) fn resource_version(meta: &ObjectMeta) -> Option<u64> {
    meta.resource_version.as_deref()?.parse().ok()
}
