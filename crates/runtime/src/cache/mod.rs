//! Caches, which keep the objects of a kind in memory and notify subscribers of each change.
//!
//! A manager has one cache for each kind and [`Selection`], shared by all controllers. Caches do
//! not use kube's `Store`, because subscribers need the old object along with the new one, indexes
//! must be updated together with the objects, and a relist should not hold every object twice.

mod by_namespace;
mod cached;
mod contact;
mod copies;
mod follow;
mod health;
mod index;
mod look_up;
mod matching;
mod objects;
mod own_writes;
mod packed;
mod readiness;
mod registry;
mod selection;
mod shard;
mod stats;
mod stored;
#[cfg(test)]
mod tests;
mod unseen;
mod writer;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kube::core::ObjectMeta;
use tokio::sync::watch;

use crate::hash::HashSet;
use crate::list_watch::ListLimit;
use crate::object::{Key, Kind, Undecodable, Watchable};
use crate::shards::Shards;

pub use cached::Cached;
use health::{NO_RESPONSE, WatchHealth};
pub(crate) use health::{Need, WatchStatus};
pub(crate) use index::Index;
pub(crate) use look_up::KnownObject;
use matching::{Matcher, Selects};
pub(crate) use objects::UndecodableEntry;
use objects::{Deleted, Objects, WatchId, resource_version};
pub(crate) use own_writes::{PendingWrite, ToJson, dynamic_to_json, to_json};
pub(crate) use registry::{CacheId, Caches, EarlyCaches, NamedWatch};
pub use selection::Selection;
pub(crate) use selection::{ListOptions, Trim};
pub(crate) use stats::CacheStats;
use stored::Unpacker;
use unseen::UnseenObjects;
use writer::Writer;

/// Default limit in bytes for what each controller remembers of its applies.
const APPLIED_BYTES: usize = 64 << 20;

/// An event of a watch: an object was created, updated or deleted.
#[derive(Clone, Debug)]
pub enum Change<K> {
    /// The object was created or updated, or existed when the watch started.
    Applied {
        /// The object before the change; `None` if it is new to the cache.
        old: Option<Arc<K>>,
        /// The object after the change.
        new: Arc<K>,
        /// Whether the object comes from the initial list and has not necessarily changed.
        initial: bool,
    },
    /// The object was deleted; this is its last known state.
    Deleted(Arc<K>),
}

impl<K> Change<K> {
    /// Returns the object after the change, or the last known state of a deleted one.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Applied { new, .. } => new,
            Self::Deleted(old) => old,
        }
    }
}

/// An event for the subscribers of a cache.
pub(crate) enum CacheEvent<K> {
    Change(Change<K>),
    /// The object was created or updated and cannot be decoded. `old` is the previous version if
    /// that could be decoded.
    Undecodable {
        old: Option<Arc<K>>,
        new: Arc<UndecodableEntry>,
        /// See [`Change::Applied`].
        initial: bool,
    },
    /// An undecodable object was deleted.
    UndecodableDeleted(Arc<UndecodableEntry>),
}

impl<K: Watchable> CacheEvent<K> {
    /// Returns the metadata of the object after the event, or the last known.
    pub(crate) fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Change(change) => change.object().meta(),
            Self::Undecodable { new, .. } => new.object.metadata(),
            Self::UndecodableDeleted(old) => old.object.metadata(),
        }
    }
}

/// Receives each event in order, before the next one is read from the watch. Must not block.
pub(crate) type Handler<K> = Box<dyn Fn(&CacheEvent<K>) + Send + Sync>;

/// Identifies a handler across all caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandlerId(u64);

impl HandlerId {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Self(COUNT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Options shared by all caches of a manager.
#[derive(Clone, Debug)]
pub(crate) struct CacheOptions {
    pub(crate) trim: Trim,
    pub(crate) lists: ListOptions,
    /// Shared by all caches of a manager.
    pub(crate) list_limit: ListLimit,
    /// Limit in bytes for what each controller remembers of its applies.
    pub(crate) applied_bytes: usize,
    /// The ranges of this replica; `None` unless the operator is sharded.
    pub(crate) shards: Option<Shards>,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            trim: Trim::default(),
            lists: ListOptions::default(),
            list_limit: ListLimit::default(),
            applied_bytes: APPLIED_BYTES,
            shards: None,
        }
    }
}

/// The cached objects of one kind that match a selection.
pub(crate) struct Cache<K: Watchable> {
    kind: Kind<K>,
    selection: Selection,
    matcher: Matcher,
    /// Set before the watches start.
    options: OnceLock<CacheOptions>,
    /// Serializes writers. Lock it before `objects`.
    writer: Mutex<Writer<K>>,
    unpacker: Unpacker<K>,
    objects: RwLock<Objects<K>>,
    /// Whether the log has already reported that an index function reads this cache.
    reads_itself: AtomicBool,
    handlers: RwLock<Vec<(HandlerId, Handler<K>)>>,
    /// `true` once the watches are no longer needed.
    stopped: watch::Sender<bool>,
    /// Notified when the watches must relist.
    restarted: watch::Sender<()>,
    /// Notified when objects of further ranges were listed.
    extended: watch::Sender<()>,
    unseen: UnseenObjects<K>,
    /// Number of watches that have not delivered their first list yet.
    unsynced: AtomicUsize,
    synced: watch::Sender<bool>,
    /// Number of users with each [`Need`].
    needs: [AtomicUsize; 3],
}

impl<K: Watchable> Cache<K> {
    pub(crate) fn new(kind: Kind<K>, selection: Selection) -> Self {
        Self {
            kind,
            matcher: Matcher::of(&selection),
            selection,
            options: OnceLock::new(),
            writer: Mutex::default(),
            unpacker: Unpacker::default(),
            objects: RwLock::default(),
            reads_itself: AtomicBool::new(false),
            handlers: RwLock::default(),
            stopped: watch::channel(false).0,
            restarted: watch::channel(()).0,
            extended: watch::channel(()).0,
            unseen: UnseenObjects::default(),
            unsynced: AtomicUsize::new(0),
            synced: watch::channel(false).0,
            needs: Default::default(),
        }
    }

    /// Sets the options unless they are already set.
    fn configure(&self, options: &CacheOptions) {
        self.options.get_or_init(|| options.clone());
    }

    fn options(&self) -> &CacheOptions {
        self.options.get_or_init(CacheOptions::default)
    }

    fn trim(&self) -> Trim {
        self.options().trim
    }

    pub(crate) fn kind(&self) -> &Kind<K> {
        &self.kind
    }

    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<K>> {
        let form = self.read().form(key)?.clone();
        self.unpacker.open(key, &form)
    }

    /// Returns the entry for this key if the stored object cannot be decoded.
    pub(crate) fn undecodable(&self, key: &Key) -> Option<Arc<UndecodableEntry>> {
        self.read().undecodable.get(key).cloned()
    }

    /// Returns the keys of all objects, in no particular order.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.read().by_key.keys(None)
    }

    /// Adds a handler and delivers each existing object to it as an initial event.
    pub(crate) fn subscribe(&self, handler: Handler<K>) -> HandlerId {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        // No change is dispatched while the lock is held, so the handler misses none. A change that
        // is in the cache but not yet dispatched is delivered twice: here as an initial event, and
        // later as a change. A deletion that is not yet dispatched is delivered without a preceding
        // initial event.
        let (existing, undecodable) = {
            let objects = self.read();
            let undecodable: Vec<_> = objects.undecodable.values().cloned().collect();
            (objects.by_key.keys(None), undecodable)
        };
        // One at a time: packed objects take several times their memory while a handler uses them.
        for new in existing.iter().filter_map(|key| self.get(key)) {
            handler(&CacheEvent::Change(Change::Applied {
                old: None,
                new,
                initial: true,
            }));
        }
        for new in undecodable {
            handler(&CacheEvent::Undecodable {
                old: None,
                new,
                initial: true,
            });
        }
        let id = HandlerId::new();
        handlers.push((id, handler));
        id
    }

    /// Removes a handler. It receives no events after this method has returned.
    pub(crate) fn unsubscribe(&self, id: HandlerId) {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        handlers.retain(|(handler, _)| *handler != id);
    }

    /// Adds an object as if a watch had delivered it.
    pub(crate) fn put(&self, object: K) {
        self.apply(None, object, true);
    }

    /// Records an object created by this process until the watch delivers it, so that its deletion
    /// is delivered even if the watch never shows the object; see [`UnseenObjects`]. `copy` returns
    /// the object with the metadata `meta`. It is rarely called, because the cache usually has the
    /// object already.
    pub(crate) fn record_created(&self, meta: &ObjectMeta, copy: impl FnOnce() -> K) {
        let key = Key::of_meta(meta);
        let Some(version) = resource_version(meta) else {
            return;
        };
        if self.selects(meta) == Selects::Yes && self.is_unseen(&key, version) {
            let mut object = copy();
            self.trim().apply(object.meta_mut());
            self.unseen.insert(key, version, object);
        }
    }

    /// Returns whether the cache holds an object with this metadata.
    fn selects(&self, meta: &ObjectMeta) -> Selects {
        match self.is_in_shard(meta) {
            true => self.matcher.selects(meta),
            false => Selects::No,
        }
    }

    /// Returns `true` if the watch has not delivered this version of an object but may still do so.
    fn is_unseen(&self, key: &Key, version: u64) -> bool {
        let objects = self.read();
        objects.form(key).is_none() && objects.is_undecided(key, version)
    }

    /// After an event for an object, forgets the unseen objects that the watch has now either
    /// delivered or skipped.
    fn settle_unseen(&self, key: &Key) {
        self.unseen
            .settle(key, |key, version| self.read().is_undecided(key, version));
    }

    fn apply(&self, watch: Option<WatchId>, object: K, initial: bool) {
        self.apply_received(watch, object, 0, initial);
    }

    /// Stores an object from a watch. `bytes` is its size as received.
    fn apply_received(&self, watch: Option<WatchId>, mut object: K, bytes: usize, initial: bool) {
        self.kind.set_types(&mut object);
        self.trim().apply(object.meta_mut());
        if !K::metadata_api() {
            // serde allocates vectors with capacity for four entries, of which usually one is used.
            // Cloning drops the excess. Packed objects have no such overhead.
            object = object.clone();
        }
        let (key, new) = (Key::of(&object), Arc::new(object));
        let old = self.store(watch, &key, &new, bytes);
        self.settle_unseen(&key);
        let unchanged = old.as_ref().is_some_and(|old| {
            old.meta().resource_version == new.meta().resource_version && old.meta().uid == new.meta().uid
        });
        if !unchanged {
            self.dispatch_change(Change::Applied { old, new, initial });
        }
    }

    /// Stores metadata and error of an undecodable object, in place of the object.
    ///
    /// An older, decodable version is removed: acting on it would undo later writes.
    fn apply_undecodable(&self, watch: Option<WatchId>, mut object: Undecodable, initial: bool) {
        self.trim().apply(object.meta_mut());
        if self.kind.is_confidential() {
            object.redact();
        }
        let key = Key::of_meta(object.metadata());
        let put = self.write().put_undecodable(watch, &key, object);
        self.settle_unseen(&key);
        let Some((old, new)) = put else {
            return;
        };
        let old = old.and_then(|old| self.unpacker.open(&key, &old));
        if new.is_first_of_reason() {
            let (kind, object) = (self.kind.describe(), &new.object);
            tracing::error!(
                kind,
                object = %key,
                field = object.field(),
                error = object.cause(),
                "stored object cannot be decoded, skipping it until it changes"
            );
        }
        self.dispatch(&CacheEvent::Undecodable { old, new, initial });
    }

    fn delete(&self, watch: Option<WatchId>, key: &Key, version: Option<u64>) {
        let deleted = self.write().delete(watch, key, version);
        self.settle_unseen(key);
        match deleted {
            Some(Deleted::Object(old)) => {
                let old = self.unpacker.open(key, &old);
                old.into_iter()
                    .for_each(|old| self.dispatch_change(Change::Deleted(old)));
            }
            Some(Deleted::Undecodable(old)) => self.dispatch(&CacheEvent::UndecodableDeleted(old)),
            None => {}
        }
    }

    /// Deletes the objects missing from the last list of a watch of `namespace` (`None`: all
    /// namespaces). `undecodable` has the keys of the listed objects that cannot be decoded, and
    /// `expected` the keys of the objects that were unseen when the list was requested.
    fn delete_unlisted(
        &self,
        watch: WatchId,
        namespace: Option<&str>,
        undecodable: &HashSet<Key>,
        expected: HashSet<Key>,
    ) {
        let in_namespace = |key: &&Key| namespace.is_none() || key.namespace.as_deref() == namespace;
        let missing: Vec<Key> = {
            let objects = self.read();
            let known = objects.undecodable.keys().chain(objects.own_deletions());
            let gone = known
                .filter(in_namespace)
                .filter(|key| !undecodable.contains(key));
            let unlisted = objects.unlisted(watch, namespace);
            unlisted.into_iter().chain(gone.cloned()).collect()
        };
        for key in missing {
            self.delete(None, &key, None);
        }
        let expected = expected.into_iter().filter(|key| in_namespace(&key)).collect();
        for object in self.unseen.take_missing(expected) {
            self.dispatch_change(Change::Deleted(object));
        }
    }

    fn dispatch_change(&self, change: Change<K>) {
        self.dispatch(&CacheEvent::Change(change));
    }

    fn dispatch(&self, event: &CacheEvent<K>) {
        let handlers = self.handlers.read().unwrap_or_else(PoisonError::into_inner);
        for (_, handler) in handlers.iter() {
            handler(event);
        }
    }

    /// Returns `true` once all subscribers have received the first list.
    pub(crate) fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Resolves once all subscribers have received the first list.
    pub(crate) async fn synced(&self) {
        // The cache owns the sender, so the wait cannot fail.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Marks the cache as synced without a watch.
    pub(crate) fn assume_synced(&self) {
        self.synced.send_replace(true);
    }

    /// Registers a user with this need.
    pub(crate) fn need(&self, need: Need) {
        self.needs[need as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Unregisters a user with this need.
    pub(crate) fn release_need(&self, need: Need) {
        self.needs[need as usize].fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the highest need among all users.
    fn greatest_need(&self) -> Need {
        let all = [Need::Always, Need::AtStart];
        let has_users = |need: &Need| self.needs[*need as usize].load(Ordering::Relaxed) > 0;
        all.into_iter().find(has_users).unwrap_or(Need::Optional)
    }

    /// Returns the last error of a watch, preferably of one that has not listed yet.
    pub(crate) fn last_error(&self) -> String {
        let objects = self.read();
        let failed = objects
            .watches()
            .filter_map(|watch| Some((watch, watch.last_error()?)));
        let worst = failed.min_by_key(|(watch, _)| watch.is_synced());
        worst.map_or_else(|| NO_RESPONSE.to_owned(), |(_, error)| error)
    }

    /// Adds a watch that is about to start.
    fn add_watch(&self, namespace: Option<String>) -> (WatchId, Arc<WatchHealth>) {
        let mut objects = self.write();
        let watch = objects.add_watch(namespace);
        (watch, Arc::clone(objects.health(watch)))
    }

    fn mark_watch_synced(&self, watch: WatchId) {
        self.read().health(watch).note_synced();
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
