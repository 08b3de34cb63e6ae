//! Watches that a reconcile adds.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Ctx;
use crate::cache::{Cache, CacheId, Cached};
use crate::controller::{MapsLate, Watch, is_mapping};
use crate::error::Error;
use crate::object::Watchable;

/// The watches that were added to one controller, by name and by what they watch.
pub(super) type LateWatches = Mutex<HashSet<(String, CacheId)>>;

impl<S: Send + Sync + 'static> Ctx<S> {
    /// Makes the controller hear of one more kind from now on, until the manager stops.
    ///
    /// It is for kinds, or selections of objects, that the controller learns of from what it reconciles; what is known
    /// before belongs to [`Controller::watch`](crate::Controller::watch). The objects that are there are told as new
    /// ones, and reconcile what the watch makes of them. Called again with the same name for the same kind and
    /// selection, it adds nothing, whatever the filter and the mapping are then.
    ///
    /// It does not wait for the API server: what comes of the watch, [`Watching`] tells. A kind that is not served,
    /// or must not be watched, is tried again and logged, and ends nothing.
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
    /// When the mapping names objects of another kind than the controller's, which trying again does not help; when the
    /// manager is stopping; and in the mapping of another watch.
    pub fn watch<W, M>(&self, name: impl Into<String>, watch: Watch<W, M>) -> Result<Watching<W>, Error>
    where
        W: Watchable,
        M: MapsLate<W, S>,
    {
        let caches = self.caches();
        let (kind, selection) = watch.watched();
        let Some(reconciled) = &self.shared.reconciled else {
            // In a test, the cache is what it was made to be.
            let cache = caches.of(kind, selection);
            cache.assume_synced();
            return Ok(Watching { cache });
        };
        if is_mapping() {
            return Err(Error::terminal(
                "a mapping function cannot add a watch, because the cache waits for it; add it in the reconcile function",
            ));
        }
        if caches.is_stopping() {
            return Err(Error::new("watch not added: the manager is stopping"));
        }
        let id = CacheId::of(kind, selection);
        let cache = caches.of(kind, selection);
        // The lock is held until the watch is there: whoever asks for it at the same time finds it at work.
        let mut late = self.shared.late.lock().unwrap_or_else(PoisonError::into_inner);
        let named = (name.into(), id);
        if !late.contains(&named) {
            watch.subscribe_late(&cache, reconciled, self)?;
            tracing::info!(
                controller = self.controller(),
                watch = named.0,
                kind = cache.kind().describe(),
                "watch added"
            );
            late.insert(named);
        }
        Ok(Watching { cache })
    }
}

/// A watch that was [added](Ctx::watch) while the controller runs.
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
    /// Whether the objects that were there are in the cache, and have been told to the controller.
    pub fn is_synced(&self) -> bool {
        self.cache.is_synced()
    }

    /// Waits until the objects that were there are in the cache, and returns it.
    ///
    /// The reconcile, and with it one of the controller's [workers](crate::Controller::concurrency), waits: a kind that
    /// may not be served yet deserves a short time.
    ///
    /// # Errors
    /// When it takes longer than `within`; says what the watch ran into. The watch goes on trying.
    pub async fn synced(&self, within: Duration) -> Result<Cached<W>, Error> {
        match tokio::time::timeout(within, self.cache.synced()).await {
            Ok(()) => Ok(Cached::new(Arc::clone(&self.cache))),
            Err(_) => Err(Error::new(format!(
                "timed out after {within:?} waiting for the cache of {} to sync; last error: {}",
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
    async fn in_a_test_a_watch_sees_what_the_context_was_given() {
        let nowhere = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
        let client = kube::Client::try_from(nowhere).unwrap();
        let ctx = Ctx::new(client, "memo", ()).caching([Secret::default()]);
        let watching = ctx.watch("secrets", Watch::<Secret>::owned()).unwrap();
        assert!(watching.is_synced());
        assert_eq!(watching.synced(Duration::ZERO).await.unwrap().len(), 1);
    }
}
