//! All caches of a manager, and the watches that fill them.

use std::any::{Any, TypeId};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use kube::core::ObjectMeta;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::matching::Selects;
use super::objects::WriteStart;
use super::own_writes::ToJson;
use super::{Cache, CacheOptions, CacheStats, Need, PendingWrite, Selection, WatchStatus};
use crate::error::Error;
use crate::hash::HashMap;
use crate::object::{Key, Kind, Watchable};
use crate::shards::Scope;

pub(crate) type NamedWatch = (String, RunWatch);

/// Runs a watch for as long as its cache has users. A watch that ends earlier is an error.
type RunWatch = BoxFuture<'static, Result<(), Error>>;

/// A [`Cache`] with its type erased.
pub(super) trait AnyCache: Send + Sync {
    fn kind(&self) -> String;
    fn check(&self) -> Result<(), &'static str>;
    fn watches(self: Arc<Self>, client: &Client, namespaces: &[String]) -> Vec<RunWatch>;
    fn watch_synced(&self) -> watch::Receiver<bool>;
    fn last_error(&self) -> String;
    fn configure(&self, options: &CacheOptions);
    fn stats(&self) -> CacheStats;
    fn status(&self) -> Vec<WatchStatus>;
    fn report_stale(&self, limit: Duration);
    fn greatest_need(&self) -> Need;
    fn version_of(&self, key: &Key) -> Option<String>;
    fn meta_of(&self, key: &Key) -> Option<ObjectMeta>;
    /// Returns the newest resource version delivered by the watch that covers `key`. `None` without
    /// such a watch, and until its initial list is complete.
    fn passed(&self, key: &Key) -> Option<u64>;
    fn selects(&self, meta: &ObjectMeta) -> Selects;
    fn restart(&self);
    fn remove_handlers(&self);
    fn stop_watches(&self);
    /// Must be called before sending a write.
    fn begin_write(&self) -> WriteStart;
    /// Adds an object written as a different Rust type. No-op if this cache can't decode it.
    fn put_own_json(&self, start: WriteStart, object: &Value);
    fn put_own_deletion(&self, start: WriteStart, key: &Key, uid: &str);
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<K: Watchable> Cache<K> {
    async fn until_stopped(self: Arc<Self>, watch: impl Future<Output = ()> + Send) -> Result<(), Error> {
        let mut stopped = self.stopped.subscribe();
        tokio::select! {
            biased;
            () = watch => Err(Error::new("the watch has ended")),
            // Can't fail, because the cache owns the sender.
            _ = stopped.wait_for(|stopped| *stopped) => Ok(()),
        }
    }
}

impl<K: Watchable> Cache<K> {
    /// Returns the namespace of each watch, where `None` means all namespaces. Falls back to
    /// `defaults`, the manager's namespaces.
    fn namespaces(&self, defaults: &[String]) -> Vec<Option<String>> {
        let namespaces = self.selection.namespaces_or(defaults);
        match namespaces.is_empty() || !self.kind.namespaced {
            true => vec![None],
            false => namespaces.iter().cloned().map(Some).collect(),
        }
    }
}

impl<K: Watchable> AnyCache for Cache<K> {
    fn kind(&self) -> String {
        self.kind.describe()
    }

    fn check(&self) -> Result<(), &'static str> {
        match self.kind.namespaced {
            true => self.selection.check(),
            false => Ok(()),
        }
    }

    fn watches(self: Arc<Self>, client: &Client, namespaces: &[String]) -> Vec<RunWatch> {
        let namespaces = self.namespaces(namespaces);
        self.unsynced.store(namespaces.len(), Ordering::Release);
        let follow = |namespace| {
            let (this, client) = (Arc::clone(&self), client.clone());
            let watch = match self.shards().cloned() {
                Some(shards) => {
                    // Register children before any watch starts, because the caches of owners wait
                    // for them.
                    let is_awaited =
                        self.selection.scope().is_owned() && self.greatest_need() != Need::Optional;
                    let child = is_awaited.then(|| shards.add_child());
                    this.follow_shard(client, namespace, shards, child).boxed()
                }
                None => this.follow(client, namespace).boxed(),
            };
            Arc::clone(&self).until_stopped(watch).boxed()
        };
        namespaces.into_iter().map(follow).collect()
    }

    fn watch_synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    fn last_error(&self) -> String {
        Cache::last_error(self)
    }

    fn configure(&self, options: &CacheOptions) {
        Cache::configure(self, options);
    }

    fn stats(&self) -> CacheStats {
        Cache::stats(self)
    }

    fn status(&self) -> Vec<WatchStatus> {
        Cache::status(self)
    }

    fn report_stale(&self, limit: Duration) {
        Cache::report_stale(self, limit);
    }

    fn greatest_need(&self) -> Need {
        Cache::greatest_need(self)
    }

    fn version_of(&self, key: &Key) -> Option<String> {
        self.read().version_of(key).map(str::to_owned)
    }

    fn meta_of(&self, key: &Key) -> Option<ObjectMeta> {
        self.get(key).map(|object| object.meta().clone())
    }

    fn passed(&self, key: &Key) -> Option<u64> {
        let objects = self.read();
        match objects.is_watched() {
            true => objects.passed(key),
            // In unit tests of an operator, there is no watch; the cache contains whatever the test
            // put there.
            false => self.is_synced().then_some(0),
        }
    }

    fn selects(&self, meta: &ObjectMeta) -> Selects {
        Cache::selects(self, meta)
    }

    fn restart(&self) {
        self.restarted.send_replace(());
    }

    fn stop_watches(&self) {
        self.stopped.send_replace(true);
    }

    fn remove_handlers(&self) {
        self.handlers
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    fn begin_write(&self) -> WriteStart {
        self.read().begin_write()
    }

    fn put_own_json(&self, start: WriteStart, object: &Value) {
        let decoded = match K::metadata_api() {
            // Same JSON as a metadata watch would receive.
            true => K::deserialize(json!({
                "apiVersion": "meta.k8s.io/v1",
                "kind": "PartialObjectMetadata",
                "metadata": object["metadata"],
            })),
            false => K::deserialize(object),
        };
        if let Ok(object) = decoded {
            self.put_own_write(start, object);
        }
    }

    fn put_own_deletion(&self, start: WriteStart, key: &Key, uid: &str) {
        self.write().put_own_deletion(start, key, uid);
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct CacheId {
    rust_type: TypeId,
    /// API version and plural name. The type alone isn't enough, since all dynamic kinds share it.
    resource: (String, String),
    selection: Selection,
}

impl CacheId {
    pub(crate) fn of<K: Watchable>(kind: &Kind<K>, selection: &Selection) -> Self {
        let version = K::api_version(&kind.dynamic).into_owned();
        Self {
            rust_type: TypeId::of::<K>(),
            resource: (version, K::plural(&kind.dynamic).into_owned()),
            selection: selection.clone(),
        }
    }
}

/// Caches created before the manager starts, when some of its options aren't known yet.
#[derive(Default)]
pub(crate) struct EarlyCaches(HashMap<CacheId, Arc<dyn AnyCache>>);

impl EarlyCaches {
    pub(crate) fn of<K: Watchable>(&mut self, kind: &Kind<K>, selection: &Selection) -> Arc<Cache<K>> {
        let id = CacheId::of(kind, selection);
        let existing = self.0.get(&id).map(|cache| Arc::clone(cache).into_any());
        if let Some(Ok(existing)) = existing.map(|cache| cache.downcast()) {
            return existing;
        }
        let cache = Arc::new(Cache::new(kind.clone(), selection.clone()));
        cache.need(Need::AtStart);
        self.0.insert(id, cache.clone());
        cache
    }
}

/// Handle to all caches of a manager. Clones refer to the same caches.
#[derive(Clone)]
pub(crate) struct Caches(Arc<Registry>);

struct Registry {
    /// Name of the cluster, or `None` for the manager's own cluster.
    cluster: Option<String>,
    client: Client,
    namespaces: Vec<String>,
    /// Set before any watch is started.
    options: OnceLock<CacheOptions>,
    /// Channel to the manager, which runs the watches.
    run: mpsc::UnboundedSender<NamedWatch>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    caches: HashMap<CacheId, Arc<dyn AnyCache>>,
    /// Number of late watches per cache. Only contains caches without other users.
    late_users: HashMap<CacheId, usize>,
    /// Set once the watches were started; those of new caches then run immediately.
    started: bool,
    /// Set at shutdown, after which new caches are no longer stored.
    closed: bool,
}

impl State {
    fn in_order(&self) -> Vec<Arc<dyn AnyCache>> {
        let mut caches: Vec<_> = self.caches.iter().collect();
        // Sort the caches so that they always start in the same order.
        caches.sort_by(|(one, _), (other, _)| one.resource.cmp(&other.resource));
        caches.into_iter().map(|(_, cache)| Arc::clone(cache)).collect()
    }
}

impl Caches {
    /// Creates a registry for the given namespaces, or for all namespaces if the list is empty. The
    /// receiver yields the watches to run, after [`start`](Self::start).
    pub(crate) fn new(
        client: Client,
        namespaces: Vec<String>,
        options: CacheOptions,
    ) -> (Self, mpsc::UnboundedReceiver<NamedWatch>) {
        let (caches, watches) = Self::without_options(None, client, namespaces);
        caches.configure(&options);
        (caches, watches)
    }

    /// Creates the registry of another cluster. Call [`configure`](Self::configure) before starting
    /// it.
    pub(crate) fn of_cluster(
        name: &str,
        client: Client,
        namespaces: Vec<String>,
    ) -> (Self, mpsc::UnboundedReceiver<NamedWatch>) {
        Self::without_options(Some(name.to_owned()), client, namespaces)
    }

    fn without_options(
        cluster: Option<String>,
        client: Client,
        namespaces: Vec<String>,
    ) -> (Self, mpsc::UnboundedReceiver<NamedWatch>) {
        let (run, watches) = mpsc::unbounded_channel();
        let registry = Registry {
            cluster,
            client,
            namespaces,
            options: OnceLock::new(),
            run,
            state: Mutex::default(),
        };
        (Self(Arc::new(registry)), watches)
    }

    /// Sets the options of all caches that have none yet.
    pub(crate) fn configure(&self, options: &CacheOptions) {
        let options = self.0.options.get_or_init(|| options.clone());
        self.all().iter().for_each(|cache| cache.configure(options));
    }

    /// Adds early caches. Must be called before any other cache is created.
    pub(crate) fn add_early(&self, EarlyCaches(early): EarlyCaches) {
        early.values().for_each(|cache| cache.configure(self.options()));
        self.lock().caches.extend(early);
    }

    /// Returns the cache for a kind and selection, creating it if necessary.
    ///
    /// The manager waits for its initial list, and keeps the cache until shutdown.
    pub(crate) fn of<K: Watchable>(&self, kind: &Kind<K>, selection: &Selection) -> Arc<Cache<K>> {
        self.of_needed(kind, selection, Need::AtStart)
    }

    /// Like [`of`](Self::of), but with an explicit [`Need`].
    pub(crate) fn of_needed<K: Watchable>(
        &self,
        kind: &Kind<K>,
        selection: &Selection,
        need: Need,
    ) -> Arc<Cache<K>> {
        let mut state = self.lock();
        let id = CacheId::of(kind, selection);
        // The new user keeps the cache until shutdown, so the end of the last late watch must no
        // longer stop it.
        state.late_users.remove(&id);
        let cache = self.find_or_create(&mut state, id, kind, selection);
        cache.need(need);
        cache
    }

    /// Like [`of_needed`](Self::of_needed), but for a late watch, which must
    /// [`release`](Self::release) the cache when it ends.
    pub(crate) fn retain<K: Watchable>(
        &self,
        kind: &Kind<K>,
        selection: &Selection,
        need: Need,
    ) -> Arc<Cache<K>> {
        let mut state = self.lock();
        let id = CacheId::of(kind, selection);
        // A cache with other users is kept until shutdown anyway, so late users needn't be counted.
        let is_kept = state.caches.contains_key(&id) && !state.late_users.contains_key(&id);
        if !is_kept {
            *state.late_users.entry(id.clone()).or_default() += 1;
        }
        let cache = self.find_or_create(&mut state, id, kind, selection);
        cache.need(need);
        cache
    }

    /// Releases a cache retained by a late watch, and stops its watches if there are no other
    /// users.
    pub(crate) fn release<K: Watchable>(&self, cache: &Cache<K>, need: Need) {
        cache.release_need(need);
        let id = CacheId::of(&cache.kind, &cache.selection);
        let mut state = self.lock();
        // Other users keep the cache until shutdown.
        let Some(users) = state.late_users.get_mut(&id) else {
            return;
        };
        *users -= 1;
        if *users == 0 {
            state.late_users.remove(&id);
            if let Some(cache) = state.caches.remove(&id) {
                cache.stop_watches();
            }
        }
    }

    fn find_or_create<K: Watchable>(
        &self,
        state: &mut State,
        id: CacheId,
        kind: &Kind<K>,
        selection: &Selection,
    ) -> Arc<Cache<K>> {
        if let Some(cache) = state.find(&id) {
            return cache;
        }
        let cache = Arc::new(Cache::new(kind.clone(), selection.clone()));
        if let Some(options) = self.0.options.get() {
            cache.configure(options);
        }
        // Don't store the cache, since `close` has already run and wouldn't drop it.
        if state.closed {
            return cache;
        }
        state.caches.insert(id, cache.clone());
        if state.started {
            self.0.run(cache.clone());
        }
        cache
    }

    pub(crate) fn find<K: Watchable>(&self, kind: &Kind<K>, selection: &Selection) -> Option<Arc<Cache<K>>> {
        let scopes = match selection.scope() {
            // Try every scope, because the caller doesn't know how objects are distributed over
            // replicas.
            Scope::Everywhere => &Scope::ALL[..],
            _ => &[selection.scope()],
        };
        let state = self.lock();
        let mut ids = scopes
            .iter()
            .map(|scope| CacheId::of(kind, &selection.clone().in_scope(*scope)));
        ids.find_map(|id| state.find(&id))
    }

    /// Unlike [`find`](Self::find), ignores caches restricted to the objects of this replica.
    pub(crate) fn find_whole<K: Watchable>(
        &self,
        kind: &Kind<K>,
        selection: &Selection,
    ) -> Option<Arc<Cache<K>>> {
        self.lock().find(&CacheId::of(kind, selection))
    }

    pub(crate) fn options(&self) -> &CacheOptions {
        self.0.options.get_or_init(CacheOptions::default)
    }

    /// Returns the namespaces of all caches, or nothing for all namespaces.
    pub(crate) fn namespaces(&self) -> &[String] {
        &self.0.namespaces
    }

    pub(crate) fn namespaces_of<K: Watchable>(&self, cache: &Cache<K>) -> Vec<Option<String>> {
        cache.namespaces(&self.0.namespaces)
    }

    pub(super) fn of_kind<K: Watchable>(&self, kind: &Kind<K>) -> Vec<Arc<dyn AnyCache>> {
        let resource = CacheId::of(kind, &Selection::all()).resource;
        let state = self.lock();
        let of_kind = state.caches.iter().filter(|(id, _)| id.resource == resource);
        of_kind.map(|(_, cache)| Arc::clone(cache)).collect()
    }

    /// Must be called before sending the request.
    pub(crate) fn begin_write<K: Watchable>(&self, kind: &Kind<K>, to_json: ToJson<K>) -> PendingWrite<K> {
        PendingWrite::begin(kind, self.of_kind(kind), to_json)
    }

    /// Validates the selections of all caches. The error contains the kind of the first cache with
    /// an invalid selection, and a description of the problem.
    pub(crate) fn check(&self) -> Result<(), (String, &'static str)> {
        let state = self.lock();
        let invalid = state.caches.values().filter_map(|cache| {
            let reason = cache.check().err()?;
            Some((cache.kind(), reason))
        });
        invalid.min().map_or(Ok(()), Err)
    }

    /// Starts the watches of all caches, including those created later. Calling this again is a
    /// no-op.
    pub(crate) fn start(&self) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.started, true) {
            return;
        }
        for cache in state.in_order() {
            self.0.run(cache);
        }
    }

    /// Makes all watches relist, because the client is now connected to a different server.
    pub(crate) fn restart(&self) {
        self.all().iter().for_each(|cache| cache.restart());
    }

    pub(crate) fn has_object(&self, key: &Key, uid: &str) -> bool {
        let has = |meta: ObjectMeta| meta.uid.as_deref() == Some(uid);
        self.all().iter().any(|cache| cache.meta_of(key).is_some_and(has))
    }

    /// The returned closure holds a weak reference, so it doesn't keep the caches alive.
    pub(super) fn weakly_all(&self) -> impl Fn() -> Vec<Arc<dyn AnyCache>> + Send + Sync + 'static {
        let registry = Arc::downgrade(&self.0);
        move || {
            registry
                .upgrade()
                .map(|registry| Self(registry).all())
                .unwrap_or_default()
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<dyn AnyCache>> {
        self.lock().in_order()
    }

    pub(crate) fn cluster(&self) -> Option<&str> {
        self.0.cluster.as_deref()
    }

    /// Returns `true` during shutdown, when new watches are no longer run.
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.run.is_closed()
    }

    /// Drops all caches and handlers, whose reference cycles would leak otherwise.
    pub(crate) fn close(&self) {
        let caches = {
            let mut state = self.lock();
            state.closed = true;
            std::mem::take(&mut state.caches)
        };
        caches.values().for_each(|cache| cache.remove_handlers());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Ignore poisoning: nothing can panic while the lock is held.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    fn run(&self, cache: Arc<dyn AnyCache>) {
        let name = format!("cache of {}", cache.kind());
        for watch in cache.watches(&self.client, &self.namespaces) {
            // Fails only if the manager is shutting down and no longer needs the watch.
            let _ = self.run.send((name.clone(), watch));
        }
    }
}

impl State {
    fn find<K: Watchable>(&self, id: &CacheId) -> Option<Arc<Cache<K>>> {
        let cache = Arc::clone(self.caches.get(id)?).into_any();
        cache.downcast().ok()
    }
}
