//! In-memory caches of objects that notify their subscribers about changes.
//!
//! A manager has one cache per kind and [`Selection`], shared by all of its controllers. There are
//! three reasons for not building on kube's `Store`: subscribers need the previous version of an
//! object as well as the new one, indexes must be updated atomically with the objects, and a relist
//! should not keep two copies of every object in memory.

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

/// Default of [`CacheOptions::applied_bytes`].
const APPLIED_BYTES: usize = 64 << 20;

/// A change to an object, as delivered by a watch.
#[derive(Clone, Debug)]
pub enum Change<K> {
    /// The object was created or updated. Also sent for each object that already exists when the
    /// watch starts.
    Applied {
        /// The previous version, or `None` if the object is new to the cache.
        old: Option<Arc<K>>,
        /// The new version.
        new: Arc<K>,
        /// Whether the object is part of the initial list, so it may not have changed at all.
        initial: bool,
    },
    /// The object was deleted. Contains its last known state.
    Deleted(Arc<K>),
}

impl<K> Change<K> {
    /// Returns the new version of the object, or its last known state if it was deleted.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Applied { new, .. } => new,
            Self::Deleted(old) => old,
        }
    }
}

pub(crate) enum CacheEvent<K> {
    Change(Change<K>),
    /// The object was created or updated, but can't be decoded. `old` is the previous version, if
    /// it was decodable.
    Undecodable {
        old: Option<Arc<K>>,
        new: Arc<UndecodableEntry>,
        /// See [`Change::Applied`].
        initial: bool,
    },
    UndecodableDeleted(Arc<UndecodableEntry>),
}

impl<K: Watchable> CacheEvent<K> {
    /// For deletions, this is the last known metadata.
    pub(crate) fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Change(change) => change.object().meta(),
            Self::Undecodable { new, .. } => new.object.metadata(),
            Self::UndecodableDeleted(old) => old.object.metadata(),
        }
    }
}

/// Called sequentially for each event. Must not block, because the watch doesn't proceed to the
/// next event until it returns.
pub(crate) type Handler<K> = Box<dyn Fn(&CacheEvent<K>) + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandlerId(u64);

impl HandlerId {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Self(COUNT.fetch_add(1, Ordering::Relaxed))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct CacheOptions {
    pub(crate) trim: Trim,
    pub(crate) lists: ListOptions,
    /// Limits concurrent lists across all caches.
    pub(crate) list_limit: ListLimit,
    /// Memory budget per controller for remembering its applies, in bytes.
    pub(crate) applied_bytes: usize,
    /// Ranges assigned to this replica, or `None` if the operator isn't sharded.
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

/// All objects of a kind that match a selection.
pub(crate) struct Cache<K: Watchable> {
    kind: Kind<K>,
    selection: Selection,
    matcher: Matcher,
    /// Set before any watch is started.
    options: OnceLock<CacheOptions>,
    /// Serializes writers. Must be locked before `objects` to avoid deadlocks.
    writer: Mutex<Writer<K>>,
    unpacker: Unpacker<K>,
    objects: RwLock<Objects<K>>,
    /// Whether an index function reading this very cache was already logged.
    reads_itself: AtomicBool,
    handlers: RwLock<Vec<(HandlerId, Handler<K>)>>,
    stopped: watch::Sender<bool>,
    /// Makes the watches relist.
    restarted: watch::Sender<()>,
    /// Notified after the objects of additional ranges were listed.
    extended: watch::Sender<()>,
    unseen: UnseenObjects<K>,
    /// Number of watches that haven't delivered their initial list yet.
    unsynced: AtomicUsize,
    synced: watch::Sender<bool>,
    /// Number of users for each level of [`Need`].
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

    pub(crate) fn undecodable(&self, key: &Key) -> Option<Arc<UndecodableEntry>> {
        self.read().undecodable.get(key).cloned()
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        self.read().by_key.keys(None)
    }

    /// Adds a handler, and immediately sends it an initial event for each existing object.
    pub(crate) fn subscribe(&self, handler: Handler<K>) -> HandlerId {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        // No event is missed, because dispatching is blocked while we hold the lock. But the
        // handler may receive a change twice (as an initial event and again as a change) if the
        // change is already in the cache but not dispatched yet. Likewise, it may receive a
        // deletion without a preceding initial event.
        let (existing, undecodable) = {
            let objects = self.read();
            let undecodable: Vec<_> = objects.undecodable.values().cloned().collect();
            (objects.by_key.keys(None), undecodable)
        };
        // Unpack objects one at a time, since an unpacked object takes several times as much
        // memory.
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

    /// Once this returns, the handler is never called again.
    pub(crate) fn unsubscribe(&self, id: HandlerId) {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        handlers.retain(|(handler, _)| *handler != id);
    }

    /// Adds an object as if a watch had delivered it.
    pub(crate) fn put(&self, object: K) {
        self.apply(None, object, true);
    }

    /// Remembers an object created by this process until its watch delivers it, see
    /// [`UnseenObjects`]. Otherwise its deletion might never be delivered.
    ///
    /// `copy` returns the object itself. It's rarely called, because the cache usually contains the
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

    fn selects(&self, meta: &ObjectMeta) -> Selects {
        match self.is_in_shard(meta) {
            true => self.matcher.selects(meta),
            false => Selects::No,
        }
    }

    /// Returns `true` if the watch may still deliver this version of an object.
    fn is_unseen(&self, key: &Key, version: u64) -> bool {
        let objects = self.read();
        objects.form(key).is_none() && objects.is_undecided(key, version)
    }

    /// Called after an event. The watch has now either delivered or skipped all older objects, so
    /// they no longer need to be remembered.
    fn settle_unseen(&self, key: &Key) {
        self.unseen
            .settle(key, |key, version| self.read().is_undecided(key, version));
    }

    fn apply(&self, watch: Option<WatchId>, object: K, initial: bool) {
        self.apply_received(watch, object, 0, initial);
    }

    /// Stores an object received from a watch. `bytes` is its serialized size.
    fn apply_received(&self, watch: Option<WatchId>, mut object: K, bytes: usize, initial: bool) {
        self.kind.set_types(&mut object);
        self.trim().apply(object.meta_mut());
        if !K::metadata_api() {
            // serde allocates capacity for at least four elements, and most vectors end up with a
            // single one. Cloning drops the excess capacity. Packed objects don't have this
            // problem.
            object = object.clone();
        }
        let (key, new) = (Key::of(&object), Arc::new(object));
        let old = self.store(watch, &key, &new, bytes);
        self.settle_unseen(&key);
        // A relist delivers every object again, even if unchanged.
        let unchanged = old.as_ref().is_some_and(|old| {
            old.meta().resource_version == new.meta().resource_version && old.meta().uid == new.meta().uid
        });
        if !unchanged {
            self.dispatch_change(Change::Applied { old, new, initial });
        }
    }

    /// Stores the metadata of an undecodable object along with the error.
    ///
    /// Also removes the previous version: a controller that kept working with it would undo later
    /// writes.
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

    /// Deletes the objects of `namespace` (or of all namespaces if `None`) that were missing from
    /// the last list.
    ///
    /// `undecodable` contains the keys of listed objects that can't be decoded, `expected` the keys
    /// of objects that were unseen when the list was requested.
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
            // Objects that this process deleted are no longer stored, so `unlisted` won't find
            // them.
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

    /// Returns `true` once all subscribers have received the initial list.
    pub(crate) fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Like [`is_synced`](Self::is_synced), but waits.
    pub(crate) async fn synced(&self) {
        // Can't fail, because `self` owns the sender.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Marks the cache as synced without an initial list, for when there's no watch.
    pub(crate) fn assume_synced(&self) {
        self.synced.send_replace(true);
    }

    pub(crate) fn need(&self, need: Need) {
        self.needs[need as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn release_need(&self, need: Need) {
        self.needs[need as usize].fetch_sub(1, Ordering::Relaxed);
    }

    fn greatest_need(&self) -> Need {
        let all = [Need::Always, Need::AtStart];
        let has_users = |need: &Need| self.needs[*need as usize].load(Ordering::Relaxed) > 0;
        all.into_iter().find(has_users).unwrap_or(Need::Optional)
    }

    /// Returns the most recent error, preferring watches that haven't synced yet.
    pub(crate) fn last_error(&self) -> String {
        let objects = self.read();
        let failed = objects
            .watches()
            .filter_map(|watch| Some((watch, watch.last_error()?)));
        let worst = failed.min_by_key(|(watch, _)| watch.is_synced());
        worst.map_or_else(|| NO_RESPONSE.to_owned(), |(_, error)| error)
    }

    /// Adds a watch whose initial list is about to start.
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
