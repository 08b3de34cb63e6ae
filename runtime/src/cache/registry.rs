//! All caches of a manager, and the watches that fill them.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use tokio::sync::{mpsc, watch};

use super::{Cache, Selection, Trim, Writing};
use crate::object::{Key, Kind, Object, Watchable};

/// A watch that fills a cache, with a name for messages.
pub(crate) type NamedWatch = (String, BoxFuture<'static, ()>);

/// A cache whose kind is not known any more.
trait AnyCache: Send + Sync {
    fn kind(&self) -> String;
    fn watches(self: Arc<Self>, client: &Client, namespaces: &[String]) -> Vec<BoxFuture<'static, ()>>;
    fn watch_synced(&self) -> watch::Receiver<bool>;
    fn last_error(&self) -> String;
    /// The resource version of an object that it holds.
    fn version_of(&self, key: &Key) -> Option<String>;
    fn forget_handlers(&self);
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<K: Watchable> AnyCache for Cache<K> {
    fn kind(&self) -> String {
        self.kind.describe()
    }

    fn watches(self: Arc<Self>, client: &Client, namespaces: &[String]) -> Vec<BoxFuture<'static, ()>> {
        let namespaces = self.selection.namespaces_or(namespaces);
        let scopes: Vec<Option<String>> = if namespaces.is_empty() || !self.kind.namespaced {
            vec![None]
        } else {
            namespaces.iter().cloned().map(Some).collect()
        };
        self.unsynced.store(scopes.len(), Ordering::Release);
        let follow = |scope| Arc::clone(&self).follow(client.clone(), scope).boxed();
        scopes.into_iter().map(follow).collect()
    }

    fn watch_synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    fn last_error(&self) -> String {
        Cache::last_error(self)
    }

    fn version_of(&self, key: &Key) -> Option<String> {
        self.get(key)?.meta().resource_version.clone()
    }

    fn forget_handlers(&self) {
        self.handlers
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// What tells one cache from another.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct CacheId {
    rust_type: TypeId,
    /// API version and plural: they tell kinds apart that share a type, as dynamic ones do.
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

/// All caches of a manager. Clones are the same caches.
#[derive(Clone)]
pub(crate) struct Caches(Arc<Registry>);

struct Registry {
    client: Client,
    namespaces: Vec<String>,
    trim: Trim,
    /// Takes the watches to where they are run.
    run: mpsc::UnboundedSender<NamedWatch>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    caches: HashMap<CacheId, Arc<dyn AnyCache>>,
    /// Whether watches are run as soon as there is a cache for them.
    started: bool,
    /// Whether caches are let go of.
    closed: bool,
}

impl Caches {
    /// Caches of these namespaces, all of them when there is none; and the watches to run, once they are started.
    pub(crate) fn new(
        client: Client,
        namespaces: Vec<String>,
        trim: Trim,
    ) -> (Self, mpsc::UnboundedReceiver<NamedWatch>) {
        let (run, watches) = mpsc::unbounded_channel();
        let registry = Registry {
            client,
            namespaces,
            trim,
            run,
            state: Mutex::default(),
        };
        (Self(Arc::new(registry)), watches)
    }

    /// The cache of these objects, made when it is asked for the first time.
    pub(crate) fn of<K: Watchable>(&self, kind: &Kind<K>, selection: &Selection) -> Arc<Cache<K>> {
        let mut state = self.lock();
        let id = CacheId::of(kind, selection);
        if let Some(cache) = state.find(&id) {
            return cache;
        }
        let cache = Arc::new(Cache::new(kind.clone(), selection.clone(), self.0.trim));
        if state.closed {
            return cache;
        }
        state.caches.insert(id, cache.clone());
        if state.started {
            self.0.run(cache.clone());
        }
        cache
    }

    /// The cache of these objects, if somebody has asked for it.
    pub(crate) fn find<K: Watchable>(&self, kind: &Kind<K>, selection: &Selection) -> Option<Arc<Cache<K>>> {
        self.lock().find(&CacheId::of(kind, selection))
    }

    /// The object that the cache of the whole kind holds, unless another cache of the kind has another version of it.
    ///
    /// Caches of one kind do not march in step: a controller that hears of a change from one must not find in another
    /// that there was none.
    pub(crate) fn agreed<K: Watchable>(&self, kind: &Kind<K>, key: &Key) -> Option<Arc<K>> {
        let state = self.lock();
        let id = CacheId::of(kind, &Selection::all());
        let object = state.find::<K>(&id)?.get(key)?;
        let version = object.meta().resource_version.as_ref();
        let mut others = state
            .caches
            .iter()
            .filter(|(other, _)| other.resource == id.resource);
        let all_agree = others.all(|(_, cache)| cache.version_of(key).as_ref() == version);
        all_agree.then_some(object)
    }

    /// Says that a request begins which writes an object of kind `K`.
    pub(crate) fn begin_write<K: Object>(&self) -> Writing<K> {
        let caches: Vec<_> = self.lock().caches.values().map(Arc::clone).collect();
        Writing::begin(caches.into_iter().map(AnyCache::into_any))
    }

    /// Runs the watches of all caches, those to come included.
    pub(crate) fn start(&self) {
        let mut state = self.lock();
        state.started = true;
        for cache in state.caches.values() {
            self.0.run(Arc::clone(cache));
        }
    }

    /// Waits until every cache has delivered its first list to all of its subscribers.
    pub(crate) async fn synced(&self) {
        let synced: Vec<_> = self
            .lock()
            .caches
            .values()
            .map(|cache| cache.watch_synced())
            .collect();
        for mut synced in synced {
            // The sender lives in the cache, so the wait cannot fail.
            let _ = synced.wait_for(|synced| *synced).await;
        }
    }

    /// A cache that is not filled yet: its kind, and the last error of its watch.
    pub(crate) fn first_unsynced(&self) -> Option<(String, String)> {
        let state = self.lock();
        let unsynced = state
            .caches
            .values()
            .filter(|cache| !*cache.watch_synced().borrow());
        let first = unsynced.min_by_key(|cache| cache.kind())?;
        Some((first.kind(), first.last_error()))
    }

    /// Whether no watch is run any more that was not asked for before.
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.run.is_closed()
    }

    /// Lets go of all caches and of all who hear of their changes; they hold on to each other.
    pub(crate) fn close(&self) {
        let caches = {
            let mut state = self.lock();
            state.closed = true;
            std::mem::take(&mut state.caches)
        };
        caches.values().for_each(|cache| cache.forget_handlers());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs while the lock is held, so a poisoned state is a whole one.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    fn run(&self, cache: Arc<dyn AnyCache>) {
        let name = format!("cache of {}", cache.kind());
        for watch in cache.watches(&self.client, &self.namespaces) {
            // Nobody takes it when the manager is stopping, and then nobody needs it.
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
