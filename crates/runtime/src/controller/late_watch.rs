//! Watches that a reconciler adds while its controller is running.
//!
//! These are methods of [`Ctx`]. They're in this module because `ctx` must not depend on
//! `controller`.

use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use super::mapping::{MapsLate, running_callback};
use super::watch::Watch;
use crate::cache::{Cache, CacheId, Cached};
use crate::ctx::{ActiveWatch, Ctx, LateWatch, LateWatchesById};
use crate::error::Error;
use crate::hash::HashSet;
use crate::object::Watchable;

impl<S: Send + Sync + 'static> Ctx<S> {
    /// Adds a watch to the running controller. It's active until the manager stops, or until you
    /// call [`unwatch`](Self::unwatch).
    ///
    /// This is intended for kinds or selections that the controller discovers at runtime. If they
    /// are known in advance, use [`Controller::watch`](crate::Controller::watch). Objects that
    /// already exist are delivered as initial events. Calling this again with the same name, kind
    /// and selection is a no-op, even if the predicate or the mapping differs.
    ///
    /// This doesn't wait for the API server; use the returned [`Watching`] if you need to. If the
    /// kind is not served, or the operator isn't permitted to watch it, the error is logged and the
    /// watch is retried. Meanwhile the process stays ready, unless the watch is
    /// [`required`](Watch::required).
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use rbuilder::{Action, Ctx, Result, Watch};
    /// async fn reconcile(settings: Arc<ConfigMap>, ctx: Ctx<()>) -> Result {
    ///     let secrets = ctx.watch("secrets", Watch::<Secret>::owned())?;
    ///     let secrets = secrets.synced(Duration::from_secs(5)).await?;
    ///     // …
    ///     Ok(Action::await_change())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a terminal error in these cases:
    ///
    /// - The mapping function returns objects of a different kind than the controller's.
    /// - The selection doesn't contain any namespaces.
    /// - It is called from within a mapping function or a predicate.
    ///
    /// If the manager is shutting down, returns a retryable error.
    pub fn watch<W, M>(&self, name: impl Into<String>, watch: Watch<W, M>) -> Result<Watching<W>, Error>
    where
        W: Watchable,
        M: MapsLate<W, S>,
    {
        let watched = watch.watched_context(self);
        watched.check_may_change_watches("add")?;
        let mut late_watches = watched.lock_late_watches();
        let (_, watching) = watched.add_watch(&mut late_watches, name.into(), watch)?;
        Ok(watching)
    }

    /// Replaces all watches added at runtime, including those added with [`watch`](Self::watch).
    /// Missing watches are added, and watches that aren't in `watches` are removed.
    ///
    /// A watch that already exists (i.e. one with the same name, kind and selection) keeps its
    /// cache.
    ///
    /// This affects the controller as a whole, not just the object being reconciled. Only call it
    /// where all of the watches are known, e.g. when reconciling a single configuration object.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use rbuilder::{Action, Ctx, Result, Watch, Watches};
    /// # use kube::core::GroupVersionKind;
    /// async fn reconcile(settings: Arc<ConfigMap>, ctx: Ctx<()>) -> Result {
    ///     let mut watches = Watches::new();
    ///     for kind in settings.data.iter().flatten().map(|(kind, _)| kind) {
    ///         let kind = ctx.discover(&GroupVersionKind::gvk("example.com", "v1", kind)).await?;
    ///         watches = watches.with("children", Watch::owned_dynamic(&kind));
    ///     }
    ///     ctx.set_watches(watches)?;
    ///     Ok(Action::await_change())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`watch`](Self::watch). On error, no watches are removed, but
    /// some may already have been added.
    pub fn set_watches(&self, watches: Watches<S>) -> Result<(), Error> {
        self.check_may_change_watches("add")?;
        let mut late_watches = self.lock_late_watches();
        let mut wanted = HashSet::default();
        for add in watches.add {
            wanted.insert(add(self, &mut late_watches)?);
        }
        let others: Vec<_> = late_watches.extract_if(|id, _| !wanted.contains(id)).collect();
        for ((name, _), watch) in others {
            self.remove_watch(&name, watch);
        }
        Ok(())
    }

    /// Returns all watches added at runtime, sorted by name and kind.
    pub fn watches(&self) -> Vec<ActiveWatch> {
        let late_watches = self.lock_late_watches();
        let mut active: Vec<_> = late_watches.values().map(|watch| (watch.describe)()).collect();
        active.sort_by(|a, b| (&a.name, &a.kind, &a.selection).cmp(&(&b.name, &b.kind, &b.selection)));
        active
    }

    /// Adds a watch, unless there already is one with the same name, kind and selection.
    ///
    /// Holds the `late_watches` lock until the subscription is established, so concurrent calls for
    /// the same watch block until then.
    fn add_watch<W, M>(
        &self,
        late_watches: &mut LateWatchesById,
        name: String,
        watch: Watch<W, M>,
    ) -> Result<((String, CacheId), Watching<W>), Error>
    where
        W: Watchable,
        M: MapsLate<W, S>,
    {
        let watch = watch.in_shard_of(self);
        let caches = self.caches();
        let (kind, selection, need) = watch.watched();
        let id = (name, CacheId::of(kind, selection));
        let Some(target) = self.watch_target() else {
            // In tests, the cache contains whatever the test put there.
            let cache = caches.of(kind, selection);
            cache.assume_synced();
            return Ok((id, Watching { cache }));
        };
        self.check_cluster_of(&watch)?;
        if late_watches.contains_key(&id)
            && let Some(cache) = caches.find(kind, selection)
        {
            return Ok((id, Watching { cache }));
        }
        let cache = caches.retain(kind, selection, need);
        let handler = match watch.subscribe_late(&cache, target, self) {
            Ok(handler) => handler,
            Err(error) => {
                caches.release(&cache, need);
                return Err(error);
            }
        };
        tracing::info!(
            controller = self.controller(),
            watch = id.0,
            kind = cache.kind().describe(),
            "watch added"
        );
        let remove = {
            let (cache, caches) = (Arc::clone(&cache), caches.clone());
            move || {
                cache.unsubscribe(handler);
                caches.release(&cache, need);
            }
        };
        let describe = {
            let (cache, name) = (Arc::clone(&cache), id.0.clone());
            move || describe(&name, &cache)
        };
        let late_watch = LateWatch {
            remove: Box::new(remove),
            describe: Box::new(describe),
        };
        late_watches.insert(id.clone(), late_watch);
        Ok((id, Watching { cache }))
    }

    /// Removes all watches added at runtime with the given name. Returns `false` if there are none.
    ///
    /// A cache without other users is no longer updated, but a [`Cached`] keeps its current
    /// objects. Keys that are already queued will still be reconciled.
    ///
    /// # Errors
    ///
    /// Returns a terminal error if it is called from within a mapping function or a predicate.
    pub fn unwatch(&self, name: &str) -> Result<bool, Error> {
        refuse_in_callback("remove")?;
        let mut late_watches = self.lock_late_watches();
        let removed: Vec<_> = late_watches.extract_if(|(named, _), _| named == name).collect();
        let is_removed = !removed.is_empty();
        for (_, watch) in removed {
            self.remove_watch(name, watch);
        }
        Ok(is_removed)
    }

    fn check_cluster_of<W: Watchable, M: MapsLate<W, S>>(&self, watch: &Watch<W, M>) -> Result<(), Error> {
        let (kind, ..) = watch.watched();
        if let Some(cluster) = self.cluster().filter(|_| M::BY_OWNER) {
            return Err(Error::terminal(format!(
                "owner references do not reach other clusters: watch {} in the cluster `{}` with `Watch::mapped`",
                kind.describe(),
                cluster.name()
            )));
        }
        match watch.cluster() {
            Some(cluster) if self.cluster() != Some(cluster) => Err(Error::terminal(format!(
                "the watch of {} is in the cluster `{}`: add it to the set of that cluster, with `set_watches` of its context",
                kind.describe(),
                cluster.name()
            ))),
            _ => Ok(()),
        }
    }

    fn remove_watch(&self, name: &str, watch: LateWatch) {
        (watch.remove)();
        tracing::info!(controller = self.controller(), watch = name, "watch removed");
    }

    fn check_may_change_watches(&self, verb: &str) -> Result<(), Error> {
        refuse_in_callback(verb)?;
        if self.watch_target().is_some() && self.caches().is_stopping() {
            return Err(Error::new("watch not added: the manager is stopping"));
        }
        Ok(())
    }

    fn lock_late_watches(&self) -> MutexGuard<'_, LateWatchesById> {
        self.late_watches().lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A set of watches for [`Ctx::set_watches`].
#[must_use = "pass it to `Ctx::set_watches`"]
pub struct Watches<S> {
    add: Vec<AddWatch<S>>,
}

type AddWatch<S> = Box<dyn FnOnce(&Ctx<S>, &mut LateWatchesById) -> Result<(String, CacheId), Error> + Send>;

impl<S> fmt::Debug for Watches<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watches").field("len", &self.add.len()).finish()
    }
}

impl<S> Default for Watches<S> {
    fn default() -> Self {
        Self { add: Vec::new() }
    }
}

impl<S: Send + Sync + 'static> Watches<S> {
    /// Creates an empty set. Passing it to [`Ctx::set_watches`] removes all watches.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a watch. Names need not be unique.
    pub fn with<W, M>(mut self, name: impl Into<String>, watch: Watch<W, M>) -> Self
    where
        W: Watchable,
        M: MapsLate<W, S>,
    {
        let name = name.into();
        self.add.push(Box::new(move |ctx, late_watches| {
            let (id, _) = ctx.add_watch(late_watches, name, watch)?;
            Ok(id)
        }));
        self
    }
}

fn describe<W: Watchable>(name: &str, cache: &Cache<W>) -> ActiveWatch {
    let synced = cache.is_synced();
    ActiveWatch {
        name: name.to_owned(),
        kind: cache.kind().describe(),
        selection: cache.selection().to_string(),
        synced,
        last_error: (!synced).then(|| cache.last_error()),
    }
}

/// Returns an error when called from a mapping function or a predicate. The cache waits for those
/// to return, so changing watches would deadlock.
fn refuse_in_callback(verb: &str) -> Result<(), Error> {
    let Some(callback) = running_callback() else {
        return Ok(());
    };
    Err(Error::terminal(format!(
        "a {callback} cannot {verb} a watch, because the cache waits for it; {verb} it in the reconcile function"
    )))
}

/// Handle to a watch that was [added](Ctx::watch) to a running controller.
pub struct Watching<W: Watchable> {
    cache: Arc<Cache<W>>,
}

impl<W: Watchable> fmt::Debug for Watching<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watching")
            .field("kind", &self.cache.kind().describe())
            .field("synced", &self.is_synced())
            .finish()
    }
}

impl<W: Watchable> Watching<W> {
    /// Returns `true` once all existing objects are in the cache and their initial events were sent
    /// to the controller.
    pub fn is_synced(&self) -> bool {
        self.cache.is_synced()
    }

    /// Waits until all existing objects are in the cache, then returns the cache.
    ///
    /// This occupies one of the controller's [workers](crate::Controller::concurrency), so consider
    /// a short timeout if the kind might not be served.
    ///
    /// # Errors
    ///
    /// After `timeout`, returns the watch's most recent error. The watch itself keeps retrying.
    pub async fn synced(&self, timeout: Duration) -> Result<Cached<W>, Error> {
        match tokio::time::timeout(timeout, self.cache.synced()).await {
            Ok(()) => Ok(Cached::new(Arc::clone(&self.cache))),
            Err(_) => Err(Error::new(format!(
                "timed out after {timeout:?} waiting for the cache of {} to sync; last error: {}",
                self.cache.kind().describe(),
                self.cache.last_error(),
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;

    use super::*;

    #[tokio::test]
    async fn watch_in_a_test_sees_objects_added_to_the_context() {
        let nowhere = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
        let client = kube::Client::try_from(nowhere).unwrap();
        let ctx = Ctx::new(client, "memo", ()).caching([Secret::default()]);
        let watching = ctx.watch("secrets", Watch::<Secret>::owned()).unwrap();
        assert!(watching.is_synced());
        assert_eq!(watching.synced(Duration::ZERO).await.unwrap().len(), 1);
    }
}
