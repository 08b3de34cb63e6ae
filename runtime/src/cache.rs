//! Caches: what the API server holds of a kind, kept in memory by one watch, and who wants to hear of changes.
//!
//! Every kind has one cache per manager, however many controllers look at it. A cache keeps the objects itself
//! rather than in kube's `Store`, because its subscribers see the old object beside the new one, and because a
//! store that is listed anew keeps every object twice for a while. `metadata.managedFields` is dropped: it is
//! often the larger half of an object, and applying does not need it.

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use kube::runtime::watcher::{self, DefaultBackoff};
use kube::{Client, Resource};
use tokio::sync::watch;

use crate::object::{Key, Object, Scope, describe_kind};

/// The longest wait between two tries to fill a cache; controllers are waiting for it.
const RETRY_UNTIL_SYNCED: Duration = Duration::from_secs(10);

/// What happened to an object.
#[derive(Debug)]
pub(crate) enum Change<K> {
    Applied {
        old: Option<Arc<K>>,
        new: Arc<K>,
        /// The object was there before the cache was; nobody just touched it.
        initial: bool,
    },
    Deleted(Arc<K>),
}

/// Hears of each change, in order, before the next one is read; it must not block.
pub(crate) type Handler<K> = Box<dyn Fn(&Change<K>) + Send + Sync>;

/// The objects of one kind in the watched namespaces.
pub(crate) struct Cache<K> {
    objects: RwLock<HashMap<Key, Arc<K>>>,
    handlers: RwLock<Vec<Handler<K>>>,
    /// How many watches have not delivered their first list yet.
    unsynced: AtomicUsize,
    synced: watch::Sender<bool>,
    last_error: Mutex<String>,
}

impl<K: Object> Cache<K> {
    pub(crate) fn new() -> Self {
        Self {
            objects: RwLock::default(),
            handlers: RwLock::default(),
            unsynced: AtomicUsize::new(0),
            synced: watch::channel(false).0,
            last_error: Mutex::new("the API server has not answered yet".to_owned()),
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.objects
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(key)
            .cloned()
    }

    /// Adds a handler. Only changes from then on reach it, so this is for before the watch starts.
    pub(crate) fn subscribe(&self, handler: Handler<K>) {
        self.handlers
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(handler);
    }

    fn apply(&self, mut object: K, initial: bool) {
        object.meta_mut().managed_fields = None;
        let (key, new) = (Key::of(&object), Arc::new(object));
        let old = self
            .objects
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, Arc::clone(&new));
        let unchanged = old.as_ref().is_some_and(|old| {
            old.meta().resource_version == new.meta().resource_version && old.meta().uid == new.meta().uid
        });
        if !unchanged {
            self.tell(&Change::Applied { old, new, initial });
        }
    }

    fn delete(&self, key: &Key) {
        let old = self
            .objects
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key);
        if let Some(old) = old {
            self.tell(&Change::Deleted(old));
        }
    }

    /// Deletes what a new list of `namespace` (`None`: all of them) no longer has.
    fn keep_only(&self, namespace: Option<&str>, seen: &HashSet<Key>) {
        let gone: Vec<Key> = {
            let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
            let listed = |key: &&Key| namespace.is_none() || key.namespace.as_deref() == namespace;
            objects
                .keys()
                .filter(listed)
                .filter(|key| !seen.contains(*key))
                .cloned()
                .collect()
        };
        for key in gone {
            self.delete(&key);
        }
    }

    fn tell(&self, change: &Change<K>) {
        for handler in self
            .handlers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            handler(change);
        }
    }

    fn note_error(&self, error: &watcher::Error) {
        let explained = explain::<K>(error);
        tracing::warn!(kind = %K::kind(&()), "watch interrupted, will try again: {explained}");
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = explained;
    }

    /// Follows the objects of one namespace, or of all, for as long as it is polled.
    async fn follow(self: Arc<Self>, client: Client, namespace: Option<String>) {
        let api = <K::Scope as Scope>::api::<K>(client, namespace.as_deref());
        let mut events = watcher::watcher(api, watcher::Config::default()).boxed();
        let mut backoff = DefaultBackoff::default();
        let mut seen = HashSet::new();
        let mut synced = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => seen.clear(),
                Ok(watcher::Event::InitApply(object)) => {
                    seen.insert(Key::of(&object));
                    self.apply(object, !synced);
                }
                Ok(watcher::Event::InitDone) => {
                    self.keep_only(namespace.as_deref(), &std::mem::take(&mut seen));
                    if !std::mem::replace(&mut synced, true) {
                        self.scope_synced();
                    }
                }
                Ok(watcher::Event::Apply(object)) => self.apply(object, false),
                Ok(watcher::Event::Delete(object)) => self.delete(&Key::of(&object)),
                Err(error) => {
                    self.note_error(&error);
                    let pause = backoff.next().unwrap_or(RETRY_UNTIL_SYNCED);
                    tokio::time::sleep(if synced {
                        pause
                    } else {
                        pause.min(RETRY_UNTIL_SYNCED)
                    })
                    .await;
                }
            }
        }
    }

    fn scope_synced(&self) {
        if self.unsynced.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.synced.send_replace(true);
        }
    }
}

/// What went wrong with the watch of a `K`, and what is likely missing.
fn explain<K: Resource<DynamicType = ()>>(error: &watcher::Error) -> String {
    let cause = match error {
        watcher::Error::InitialListFailed(cause)
        | watcher::Error::WatchStartFailed(cause)
        | watcher::Error::WatchFailed(cause) => cause,
        watcher::Error::WatchError(status) => return status.message.clone(),
        watcher::Error::NoResourceVersion => return error.to_string(),
    };
    let resource = match K::group(&()) {
        group if group.is_empty() => K::plural(&()).into_owned(),
        group => format!("{}.{group}", K::plural(&())),
    };
    match cause {
        kube::Error::Api(status) if status.code == 404 => {
            format!(
                "the API server does not serve {resource} in version {}; is the CRD installed?",
                K::version(&())
            )
        }
        kube::Error::Api(status) if status.code == 403 => {
            format!(
                "{}; does the manager's role allow get, list and watch of {resource}?",
                status.message
            )
        }
        kube::Error::Api(status) => status.message.clone(),
        cause => format!("{:#}", crate::Error::new(cause.to_string())),
    }
}

/// A cache whose kind is not known any more.
trait AnyCache: Send + Sync {
    fn kind(&self) -> String;
    fn watches(self: Arc<Self>, client: &Client, namespaces: &[String]) -> Vec<BoxFuture<'static, ()>>;
    fn synced(&self) -> watch::Receiver<bool>;
    fn last_error(&self) -> String;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<K: Object> AnyCache for Cache<K> {
    fn kind(&self) -> String {
        describe_kind::<K>()
    }

    fn watches(self: Arc<Self>, client: &Client, namespaces: &[String]) -> Vec<BoxFuture<'static, ()>> {
        let scopes: Vec<Option<String>> = if namespaces.is_empty() || !K::Scope::NAMESPACED {
            vec![None]
        } else {
            namespaces.iter().cloned().map(Some).collect()
        };
        self.unsynced.store(scopes.len(), Ordering::Release);
        let follow = |scope| Arc::clone(&self).follow(client.clone(), scope).boxed();
        scopes.into_iter().map(follow).collect()
    }

    fn synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    fn last_error(&self) -> String {
        self.last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// All caches of a manager, one per type.
#[derive(Default)]
pub(crate) struct Caches {
    by_type: HashMap<TypeId, Arc<dyn AnyCache>>,
}

impl Caches {
    /// The cache of `K`, made when it is asked for the first time.
    pub(crate) fn of<K: Object>(&mut self) -> Arc<Cache<K>> {
        let make = || Arc::new(Cache::<K>::new()) as Arc<dyn AnyCache>;
        let cache = Arc::clone(self.by_type.entry(TypeId::of::<K>()).or_insert_with(make)).into_any();
        // The map's key is the type, so this is the cache just looked up.
        cache.downcast().unwrap_or_else(|_| Arc::new(Cache::new()))
    }

    /// The watches that fill the caches, each with a name for messages.
    pub(crate) fn watches(
        &self,
        client: &Client,
        namespaces: &[String],
    ) -> Vec<(String, BoxFuture<'static, ()>)> {
        let named = |cache: &Arc<dyn AnyCache>| {
            let name = format!("the cache of {}", cache.kind());
            let watches = Arc::clone(cache).watches(client, namespaces);
            watches
                .into_iter()
                .map(move |watch| (name.clone(), watch))
                .collect::<Vec<_>>()
        };
        self.by_type.values().flat_map(named).collect()
    }

    /// Waits until every cache has delivered its first list to all of its subscribers.
    pub(crate) async fn synced(&self) {
        for cache in self.by_type.values() {
            // The sender lives in the cache, so the wait cannot fail.
            let _ = cache.synced().wait_for(|synced| *synced).await;
        }
    }

    /// A cache that is not filled yet: its kind, and the last error of its watch.
    pub(crate) fn first_unsynced(&self) -> Option<(String, String)> {
        let mut unsynced: Vec<_> = self
            .by_type
            .values()
            .filter(|cache| !*cache.synced().borrow())
            .collect();
        unsynced.sort_by_key(|cache| cache.kind());
        unsynced.first().map(|cache| (cache.kind(), cache.last_error()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    fn object(namespace: &str, name: &str, version: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.namespace = Some(namespace.to_owned());
        object.metadata.name = Some(name.to_owned());
        object.metadata.resource_version = Some(version.to_owned());
        object.metadata.managed_fields = Some(Vec::new());
        object
    }

    /// A cache and the changes that reached its subscriber, as text.
    fn recorded() -> (Cache<ConfigMap>, Arc<Mutex<Vec<String>>>) {
        let (cache, log) = (Cache::new(), Arc::new(Mutex::new(Vec::new())));
        let told = Arc::clone(&log);
        cache.subscribe(Box::new(move |change: &Change<ConfigMap>| {
            let version = |object: &ConfigMap| object.metadata.resource_version.clone().unwrap_or_default();
            let line = match change {
                Change::Applied { old, new, initial } => {
                    let old = old.as_deref().map_or_else(|| "-".to_owned(), version);
                    format!(
                        "{} {old}>{}{}",
                        Key::of(&**new),
                        version(new),
                        if *initial { " initial" } else { "" }
                    )
                }
                Change::Deleted(old) => format!("{} {}>-", Key::of(&**old), version(old)),
            };
            told.lock().unwrap().push(line);
        }));
        (cache, log)
    }

    #[test]
    fn subscribers_see_old_and_new_and_no_repetition() {
        let (cache, log) = recorded();
        cache.apply(object("a", "x", "1"), true);
        cache.apply(object("a", "x", "2"), false);
        cache.apply(object("a", "x", "2"), false);
        cache.delete(&Key::of(&object("a", "x", "3")));
        cache.delete(&Key::of(&object("a", "x", "3")));
        assert_eq!(*log.lock().unwrap(), ["a/x ->1 initial", "a/x 1>2", "a/x 2>-"]);
    }

    #[test]
    fn a_new_list_deletes_what_it_lacks_in_its_own_namespace_only() {
        let (cache, log) = recorded();
        for (namespace, name) in [("a", "x"), ("a", "y"), ("b", "x")] {
            cache.apply(object(namespace, name, "1"), true);
        }
        log.lock().unwrap().clear();
        cache.keep_only(Some("a"), &HashSet::from([Key::of(&object("a", "y", "1"))]));
        assert_eq!(*log.lock().unwrap(), ["a/x 1>-"]);
        cache.keep_only(None, &HashSet::new());
        assert!(cache.objects.read().unwrap().is_empty());
    }

    #[test]
    fn managed_fields_are_not_kept() {
        let (cache, _) = recorded();
        cache.apply(object("a", "x", "1"), true);
        let kept = cache.get(&Key::of(&object("a", "x", "1"))).unwrap();
        assert_eq!(kept.metadata.managed_fields, None);
    }
}
