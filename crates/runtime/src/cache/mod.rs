//! In-memory caches of objects that notify their subscribers about changes.
//!
//! A manager has one cache per kind and [`Selection`], which all of its controllers share. We do
//! not build on kube's `Store` for three reasons. Subscribers need the previous version of an
//! object as well as the new one. Indexes have to be updated atomically with the objects. And
//! finally, a relist should not keep two copies of every object in memory.

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

/// Default limit for the memory that each controller uses to remember its applies, in bytes.
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
        /// Whether the object is part of the initial list, and hence hasn't necessarily changed.
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
    /// The object was created or updated, but we can't decode it. `old` is the previous version, if
    /// we were able to decode that.
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

/// Called for each event, in order. It must not block, because the watch only proceeds to the next
/// event after it has returned.
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
    /// How much memory each controller may use to remember its applies, in bytes.
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
    /// Serializes writers. To avoid deadlocks, lock this before `objects`.
    writer: Mutex<Writer<K>>,
    unpacker: Unpacker<K>,
    objects: RwLock<Objects<K>>,
    /// Whether we have already logged that an index function reads this cache.
    reads_itself: AtomicBool,
    handlers: RwLock<Vec<(HandlerId, Handler<K>)>>,
    stopped: watch::Sender<bool>,
    /// Tells the watches to relist.
    restarted: watch::Sender<()>,
    /// Notified after listing the objects of additional ranges.
    extended: watch::Sender<()>,
    unseen: UnseenObjects<K>,
    /// Number of watches which have not delivered their initial list yet.
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

    /// Adds a handler, which immediately receives an initial event for each existing object.
    pub(crate) fn subscribe(&self, handler: Handler<K>) -> HandlerId {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        // The handler won't miss any events, because they aren't dispatched while we hold the lock.
        // However, it may receive a change twice (as an initial event and then as a change) if the
        // change is in the cache already but hasn't been dispatched yet. Likewise, it may receive a
        // deletion without a preceding initial event.
        let (existing, undecodable) = {
            let objects = self.read();
            let undecodable: Vec<_> = objects.undecodable.values().cloned().collect();
            (objects.by_key.keys(None), undecodable)
        };
        // Unpack objects one at a time, since a packed object takes several times as much memory
        // once a handler has received it.
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

    /// Once this returns, the handler won't be called anymore.
    pub(crate) fn unsubscribe(&self, id: HandlerId) {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        handlers.retain(|(handler, _)| *handler != id);
    }

    /// Adds an object as if it had been delivered by a watch.
    pub(crate) fn put(&self, object: K) {
        self.apply(None, object, true);
    }

    /// Remembers an object created by this process until its watch delivers it, see
    /// [`UnseenObjects`]. Without this, we might never deliver its deletion.
    ///
    /// `copy` returns the object itself. It's rarely called, because the object usually is in the
    /// cache already.
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

    /// Returns `true` if this version of an object hasn't been delivered yet, but may still be.
    fn is_unseen(&self, key: &Key, version: u64) -> bool {
        let objects = self.read();
        objects.form(key).is_none() && objects.is_undecided(key, version)
    }

    /// Called after an event. By then, the watch has either delivered or skipped all older objects,
    /// so we don't have to remember them anymore.
    fn settle_unseen(&self, key: &Key) {
        self.unseen
            .settle(key, |key, version| self.read().is_undecided(key, version));
    }

    fn apply(&self, watch: Option<WatchId>, object: K, initial: bool) {
        self.apply_received(watch, object, 0, initial);
    }

    /// Stores an object that was received from a watch. `bytes` is its serialized size.
    fn apply_received(&self, watch: Option<WatchId>, mut object: K, bytes: usize, initial: bool) {
        self.kind.set_types(&mut object);
        self.trim().apply(object.meta_mut());
        if !K::metadata_api() {
            // When serde deserializes a vector, its capacity is at least four, and most vectors end
            // up with a single element. Cloning gets rid of the unused capacity. Packed objects do
            // not have this problem.
            object = object.clone();
        }
        let (key, new) = (Key::of(&object), Arc::new(object));
        let old = self.store(watch, &key, &new, bytes);
        self.settle_unseen(&key);
        // A relist delivers every object again, although most of them haven't changed.
        let unchanged = old.as_ref().is_some_and(|old| {
            old.meta().resource_version == new.meta().resource_version && old.meta().uid == new.meta().uid
        });
        if !unchanged {
            self.dispatch_change(Change::Applied { old, new, initial });
        }
    }

    /// Stores the metadata of an undecodable object along with the error.
    ///
    /// This also removes the previous version from the cache. If a controller kept working with
    /// that one, it would undo later writes.
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

    /// Deletes all objects that were missing from the last list of `namespace` (all namespaces if
    /// `None`).
    ///
    /// `undecodable` contains the keys of listed objects that cannot be decoded. `expected`
    /// contains the keys of objects that were unseen when the list was requested.
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
            // We no longer store the objects that we've deleted ourselves, so `unlisted` won't find
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
        // This can't fail: `self` owns the sender.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Pretends that we've received the initial list, because there's no watch that could deliver
    /// one.
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

    /// Returns the most recent error. Watches that aren't synced yet take precedence.
    pub(crate) fn last_error(&self) -> String {
        let objects = self.read();
        let failed = objects
            .watches()
            .filter_map(|watch| Some((watch, watch.last_error()?)));
        let worst = failed.min_by_key(|(watch, _)| watch.is_synced());
        worst.map_or_else(|| NO_RESPONSE.to_owned(), |(_, error)| error)
    }

    /// Adds a watch. Its initial list is about to start.
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
