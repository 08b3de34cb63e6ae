//! The objects of a cache: those delivered by its watches, and newer ones written by this process.
//!
//! A watch lags behind writes by its own process. A reconcile that runs again before the watch has
//! caught up would miss its own writes and repeat them: create a second child, or increment a
//! counter in the status twice. Therefore, the object that the API server returns for a write is
//! stored in the cache immediately, where *readers* see it. *Subscribers* do not: they receive
//! exactly the events of the watch, in its order, and as the old object the one from the previous
//! event.
//!
//! # Example: an update
//! The Deployment `web` is cached at version 5; all controllers have received version 5.
//!
//! | step | what happens | readers see | subscribers receive |
//! |---|---|---|---|
//! | 1 | a reconcile applies `web`; the server returns version 9 | 9 | |
//! | 2 | the watch delivers version 7, from another writer before ours | 9 | 5 → 7 |
//! | 3 | the watch delivers version 9 | 9 | 7 → 9 |
//! | 4 | the watch delivers version 11 | 11 | 9 → 11 |
//!
//! Merely storing the write would be wrong in two ways. In step 2, the older event would overwrite
//! the newer object, and readers would see the write undone. And if there were no other writer,
//! step 3 would replace 9 with 9, which is no change, so controllers that watch `web` would never
//! hear about the change from 5. Therefore, `delivered` remembers the object that subscribers know
//! for each object stored ahead of the watch. An event older than the stored object only updates
//! `delivered`.
//!
//! # Example: a creation that must not be stored
//! A write may be stored only if the watch will deliver it or something newer. Otherwise nothing
//! would ever remove it.
//!
//! 1. A reconcile sends a create of `c`. Meanwhile the watch gets 410 Gone and starts to relist.
//! 2. The server creates `c` at version 60, and somebody deletes it at version 61.
//! 3. The list is taken at version 62, without `c`. The watch will only deliver events after 62.
//! 4. The response to the create arrives: `c` at version 60. If stored now, it would stay in the
//!    cache forever.
//!
//! Therefore, [`WriteStart`] records the logical time at which the request is sent, counted in
//! lists. [`put_own_write`](Objects::put_own_write) drops the object if the watch of its namespace
//! is listing, or has listed since then; lists of other namespaces do not matter. It also drops the
//! object if its namespace is not watched, or if a selector may exclude it and it is not in the
//! cache yet. Finally, it drops the object if the watch has delivered a newer version of *any*
//! object: events arrive in the order of resource versions, so the watch is already past this
//! write.
//!
//! # Example: a deletion
//! A reconcile deletes the Job `j`, which is cached at version 5 with UID `u`. The response says
//! that it is gone, but contains no version to compare with events.
//!
//! | step | what happens | readers see | subscribers receive |
//! |---|---|---|---|
//! | 1 | the server responds that `j` is gone | nothing | |
//! | 2 | the watch delivers version 7, from another writer before the deletion | nothing | 5 → 7 |
//! | 3 | the watch delivers the deletion | nothing | 7 → deleted |
//!
//! The UID tells which events precede the deletion, because an object that is created again has a
//! different one. From step 1 to step 3, `deleted` holds `u`, and an object with this UID stays
//! hidden unless a list contains it.

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

/// The objects and their indexes, which are updated together.
///
/// All readers of a cache contend for the lock around this. Nothing in here decodes objects or
/// calls user functions: objects arrive packed, along with their values for all indexes, and leave
/// as copies of the packed form.
pub(super) struct Objects<K> {
    pub(super) by_key: ByNamespace<Stored<K>>,
    /// Sum of the sizes in `by_key`.
    bytes: u64,
    /// Stored objects that cannot be decoded. None of them is in `by_key`.
    pub(super) undecodable: HashMap<Key, Arc<UndecodableEntry>>,
    pub(super) indexes: Vec<IndexedKeys>,
    /// For each object stored ahead of the watch, the object last delivered to subscribers (`None`
    /// if they know none).
    delivered: HashMap<Key, Option<Form<K>>>,
    /// UIDs of objects that this process has deleted and whose deletion the watch has not delivered
    /// yet. None of them is in `by_key`, all of them are in `delivered`.
    deleted: HashMap<Key, String>,
    watches: Vec<WatchState>,
    /// Number of lists started so far by all watches.
    lists: u64,
    now: Tick,
}

/// The cache entry of an object that cannot be decoded.
#[derive(Debug)]
pub(crate) struct UndecodableEntry {
    pub(crate) object: Undecodable,
    /// Whether the previous version of the object failed for the same reason.
    repeated: bool,
    /// Whether an event was recorded for this reason.
    recorded: AtomicBool,
}

impl UndecodableEntry {
    /// Creates the entry that replaces `before`.
    fn after(before: Option<&Self>, object: Undecodable) -> Self {
        let same = before.filter(|before| before.object.has_reason_of(&object));
        let recorded = same.is_some_and(|before| before.recorded.load(Ordering::Relaxed));
        Self {
            object,
            repeated: same.is_some(),
            recorded: AtomicBool::new(recorded),
        }
    }

    /// Returns `true` for the first version of the object that fails for this reason.
    pub(super) fn is_first_of_reason(&self) -> bool {
        !self.repeated
    }

    /// Returns `true` to the first caller, who must then record an event about the object.
    pub(crate) fn claim_event(&self) -> bool {
        !self.recorded.swap(true, Ordering::Relaxed)
    }

    fn version(&self) -> Option<u64> {
        resource_version(self.object.metadata())
    }
}

/// An object that is about to be stored.
pub(super) struct NewObject<K> {
    pub(super) form: Form<K>,
    /// Size of the object as received, in bytes of JSON.
    pub(super) bytes: u32,
    /// The values for each index.
    pub(super) values: Vec<Vec<String>>,
}

/// An object removed from a cache, in the version that subscribers know.
pub(super) enum Deleted<K> {
    Object(Form<K>),
    Undecodable(Arc<UndecodableEntry>),
}

/// The progress of a watch of one namespace or of all.
struct WatchState {
    namespace: Option<String>,
    /// When its last list ended; `None` while it is listing.
    listed: Option<Tick>,
    /// Number of its last list, counting the lists of all watches.
    list: u32,
    /// The newest resource version delivered since the last list began.
    newest: u64,
    /// The newest resource version delivered since the watch was added.
    passed: u64,
    health: Arc<WatchHealth>,
}

impl WatchState {
    /// Returns `true` if the watch delivers the object with this key, provided that it is selected.
    fn covers(&self, key: &Key) -> bool {
        self.namespace.is_none() || self.namespace.as_deref() == key.namespace.as_deref()
    }
}

/// A logical time, counted in starts and ends of lists of one cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Tick(u64);

/// Identifies a watch of a cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchId(usize);

/// The logical time at which a write request was sent.
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
    /// Adds a watch, which starts by listing.
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

    /// Returns the keys of the objects, in one namespace or all, that were missing from the last
    /// list of this watch.
    ///
    /// Each object stores the number of its list. A set of listed keys would take as much memory as
    /// the keys of the objects themselves, and fragment the heap.
    pub(super) fn unlisted(&self, watch: WatchId, namespace: Option<&str>) -> Vec<Key> {
        let list = self.watches[watch.0].list;
        self.by_key.keys_where(namespace, |stored| stored.list < list)
    }

    /// Stores an object delivered by a watch. Returns the object that subscribers know.
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
        if self.delivered.is_empty() {
            return self.insert(key, new, list);
        }
        let is_outdated = !listing && (self.is_deleted(&key, meta) || self.has_newer(&key, version));
        match self.delivered.remove(&key) {
            Some(delivered) if is_outdated => {
                self.delivered.insert(key, Some(new.form));
                delivered
            }
            Some(delivered) => {
                self.insert(key, new, list);
                delivered
            }
            None => self.insert(key, new, list),
        }
    }

    /// Stores an undecodable object delivered by a watch, in place of an older version. Returns the
    /// object that subscribers know and the new entry. Returns `None` if this process has written a
    /// newer version in the meantime, or if the entry already has this version.
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

    /// Removes an object deleted at `version`, if known. Returns the object that subscribers know.
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
            // This process has created it again.
            Some(delivered) if self.has_newer(key, version) => {
                self.delivered.insert(key.clone(), None);
                delivered
            }
            // Subscribers also receive the deletion of an object that this process created, even if
            // they have not seen it yet: its owner may be waiting for the deletion.
            Some(delivered) => delivered.or(self.remove(key)),
            None => self.remove(key),
        };
        known.map(Deleted::Object)
    }

    pub(super) fn begin_write(&self) -> WriteStart {
        WriteStart(self.now)
    }

    /// Stores an object written by this process, unless the watch may not deliver it; see the
    /// example above. If a selector may exclude the object (`is_selected` is `false`), it is stored
    /// only if the cache already contains it.
    pub(super) fn put_own_write(
        &mut self,
        start: WriteStart,
        meta: &ObjectMeta,
        mut new: NewObject<K>,
        is_selected: bool,
    ) {
        let Some(version) = resource_version(meta) else {
            return;
        };
        let key = Key::of_meta(meta);
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
            self.delivered.entry(key).or_insert(before);
        }
    }

    /// Hides an object that this process has deleted until the watch delivers the deletion. Does
    /// nothing if the watch has already delivered it, or a list may have shown it.
    pub(super) fn put_own_deletion(&mut self, start: WriteStart, key: &Key, uid: &str) {
        let is_stored = self.form(key).is_some_and(|form| form.has_uid(&key.name, uid));
        if is_stored && self.find_current_watch(start, key).is_some() {
            let before = self.remove(key);
            self.delivered.entry(key.clone()).or_insert(before);
            self.deleted.insert(key.clone(), uid.to_owned());
        }
    }

    /// Returns the keys of the objects that this process has deleted and whose deletion the watch
    /// has not delivered yet.
    pub(super) fn own_deletions(&self) -> impl Iterator<Item = &Key> {
        self.deleted.keys()
    }

    /// Returns `true` if this process has deleted the object.
    fn is_deleted(&self, key: &Key, meta: &ObjectMeta) -> bool {
        !self.deleted.is_empty() && self.deleted.get(key) == meta.uid.as_ref() && meta.uid.is_some()
    }

    /// Returns the watch that delivers the object, unless it has listed since the write started.
    fn find_current_watch(&self, WriteStart(start): WriteStart, key: &Key) -> Option<&WatchState> {
        let watch = self.find_watch(key)?;
        watch.listed.filter(|listed| *listed <= start)?;
        Some(watch)
    }

    /// Returns the watch that delivers the object with this key, provided that it is selected.
    fn find_watch(&self, key: &Key) -> Option<&WatchState> {
        self.watches.iter().find(|watch| watch.covers(key))
    }

    /// Returns `true` once a watch has started.
    pub(super) fn is_watched(&self) -> bool {
        !self.watches.is_empty()
    }

    /// Returns the newest resource version delivered by the watch that covers an object, or `None`
    /// before its first list.
    pub(super) fn passed(&self, key: &Key) -> Option<u64> {
        let watch = self.find_watch(key)?;
        watch.health.is_synced().then_some(watch.passed)
    }

    /// Returns `true` if the watch of an object may still deliver this version, or a list in
    /// progress may contain the object.
    pub(super) fn is_undecided(&self, key: &Key, version: u64) -> bool {
        let watch = self.find_watch(key);
        watch.is_some_and(|watch| watch.listed.is_none() || watch.newest < version)
    }

    /// Records the version of an event as the newest of its watch. Returns `true` if the watch is
    /// listing.
    fn record_progress(&mut self, watch: Option<WatchId>, version: Option<u64>) -> bool {
        let Some(watch) = watch.and_then(|watch| self.watches.get_mut(watch.0)) else {
            return false;
        };
        watch.newest = watch.newest.max(version.unwrap_or_default());
        watch.passed = watch.passed.max(watch.newest);
        watch.listed.is_none()
    }

    /// Returns `true` if the stored object is newer than `version`.
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

    /// Returns the keys of all objects in a namespace, or in all: stored, undecodable, or known to
    /// subscribers only.
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

    /// Returns the form of an object that is stored, or that subscribers know.
    pub(super) fn known_form(&self, key: &Key) -> Option<Form<K>> {
        let delivered = self.delivered.get(key).and_then(Option::as_ref);
        self.form(key).or(delivered).cloned()
    }

    /// Returns `true` if the object with this key is stored and has this UID.
    pub(super) fn has_uid(&self, key: &Key, uid: &str) -> bool {
        let undecodable = self
            .undecodable
            .get(key)
            .and_then(|entry| entry.object.metadata().uid.as_deref());
        undecodable == Some(uid) || self.form(key).is_some_and(|form| form.has_uid(&key.name, uid))
    }

    /// Removes an object that still exists, but not for this process.
    pub(super) fn forget(&mut self, key: &Key) {
        self.remove(key);
        self.undecodable.remove(key);
        self.delivered.remove(key);
        self.deleted.remove(key);
    }

    /// Returns the stored form of the object with this key.
    pub(super) fn form(&self, key: &Key) -> Option<&Form<K>> {
        self.by_key.get(key).map(|stored| &stored.form)
    }

    /// Copies the objects in a namespace, or all, in no particular order.
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

    /// Copies the stored objects among these keys, in the order of the keys.
    pub(super) fn copy_keys<'a>(&self, keys: impl Iterator<Item = &'a Key>) -> Copies<K> {
        let mut copies = Copies::with_capacity(0);
        for key in keys {
            if let Some(form) = self.form(key) {
                copies.push(key.namespace.as_deref(), &key.name, form);
            }
        }
        copies
    }

    /// Returns the resource version of the object with this key.
    pub(super) fn version_of<'a>(&'a self, key: &'a Key) -> Option<&'a str> {
        self.form(key)?.resource_version(&key.name)
    }

    fn version(&self, key: &Key) -> Option<u64> {
        self.version_of(key)?.parse().ok()
    }

    /// Returns the total size of all objects as received, in bytes of JSON.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn health(&self, watch: WatchId) -> &Arc<WatchHealth> {
        &self.watches[watch.0].health
    }

    /// Returns the health of each watch.
    pub(super) fn watches(&self) -> impl Iterator<Item = &Arc<WatchHealth>> {
        self.watches.iter().map(|watch| &watch.health)
    }

    /// Returns the number of objects in a namespace, or in all.
    pub(super) fn len_in(&self, namespace: Option<&str>) -> usize {
        match namespace {
            Some(namespace) => self.by_key.in_namespace(namespace).count(),
            None => self.by_key.len(),
        }
    }

    /// Returns the number of own writes that the watches have not delivered yet.
    pub(super) fn own_writes(&self) -> usize {
        self.delivered.len()
    }
}

/// Parses the resource version, which is a number for all objects that the API server itself
/// stores.
///
/// Resource versions are
/// [ordered](https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions) within a kind.
pub(super) fn resource_version(meta: &ObjectMeta) -> Option<u64> {
    meta.resource_version.as_deref()?.parse().ok()
}
