//! Handles objects that leave a controller's selection but still have one of its finalizers.
//!
//! To a watch with selectors, such an object appears deleted, and there are no further events about
//! it. But as long as it has the finalizer, the object can't be deleted.
//!
//! So whenever an object with one of our finalizers is reported as deleted, we ask the API server
//! whether it still exists, and if so, handle it according to [`Unselected`]. We also list all
//! objects at startup, to find those that left the selection while the process wasn't running. If
//! the operator is sharded, this is repeated for objects that left while their range was moving
//! between replicas.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::ResourceExt;
use kube::api::ListParams;
use kube::core::ObjectMeta;

use super::handlers::Finalizer;
use super::primary::add_jitter;
use super::worker::Worker;
use crate::action::Action;
use crate::cache::{CacheEvent, Change};
use crate::causes::describe_causes;
use crate::error::Error;
use crate::hash::HashMap;
use crate::object::{Key, Watchable};
use crate::queue::LOW;
use crate::shards::{ShardBy, Shards};

const PAGE: u32 = 500;
const RETRY: Duration = Duration::from_secs(10);

/// How to handle an object that leaves the [selection](super::Controller::selecting) of its
/// controller, but still has one of the controller's [finalizers](super::Controller::finalizer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unselected {
    /// Run the cleanups and remove the finalizers, as if the object were being deleted. Use this if
    /// a label marks objects as managed by the operator.
    CleanUp,
    /// Only remove the finalizers, without running the cleanups.
    Release,
    /// Do nothing. Use this if a kind's objects are split between several controllers with the same
    /// finalizers, since another one of them will handle the object.
    ///
    /// If none of them does, the object can't be deleted until its finalizers are removed manually.
    Keep,
}

pub(super) struct Departures {
    /// `None` if departures need no handling, or if objects can't leave the selection at all.
    handling: Option<Unselected>,
    finalizers: Vec<String>,
    /// Objects that left the selection, with the hash that determines their range.
    departed: Mutex<HashMap<Key, u64>>,
}

impl Departures {
    pub(super) fn new(handling: Option<Unselected>, finalizers: Vec<String>) -> Self {
        let handling = handling.filter(|handling| *handling != Unselected::Keep && !finalizers.is_empty());
        Self {
            handling,
            finalizers,
            departed: Mutex::default(),
        }
    }

    pub(super) fn are_handled(&self) -> bool {
        self.handling.is_some()
    }

    /// Records a departure. Returns `true` if the object of this event may have left the selection.
    pub(super) fn note<K: Watchable>(&self, event: &CacheEvent<K>, shard_by: ShardBy) -> bool {
        if self.handling.is_none() {
            return false;
        }
        match event {
            CacheEvent::Change(Change::Deleted(old)) => self.insert(old.meta(), shard_by),
            CacheEvent::UndecodableDeleted(old) => self.insert(old.object.metadata(), shard_by),
            CacheEvent::Change(Change::Applied { new, .. }) => self.remove(&Key::of(&**new)),
            CacheEvent::Undecodable { new, .. } => self.remove(&Key::of_meta(new.object.metadata())),
        }
    }

    /// Adds an object if it has any of the finalizers, and returns whether it does.
    fn insert(&self, meta: &ObjectMeta, shard_by: ShardBy) -> bool {
        let mut present = meta.finalizers.iter().flatten();
        let is_held = present.any(|present| self.finalizers.contains(present));
        if is_held {
            self.lock().insert(Key::of_meta(meta), shard_by.hash_of(meta));
        }
        is_held
    }

    pub(super) fn hash_of(&self, key: &Key) -> Option<u64> {
        self.lock().get(key).copied()
    }

    /// Called when another replica takes over the object.
    pub(super) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    fn remove(&self, key: &Key) -> bool {
        self.lock().remove(key);
        false
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, u64>> {
        self.departed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Watchable, S: Send + Sync + 'static> Worker<K, S> {
    /// Handles an object that may have left the selection. Returns an action if it has to be
    /// repeated.
    pub(super) async fn handle_departure(&self, key: &Key) -> Result<Option<Action>, Error> {
        let Some(handling) = self.departures.handling else {
            return Ok(None);
        };
        if self.departures.hash_of(key).is_none() {
            return Ok(None);
        }
        let api = self.cache.kind().api(self.ctx.client(), key.namespace.as_deref());
        // List by name instead of using a get: a controller's role has `list` on its kind, but not
        // necessarily `get`.
        let named = format!("metadata.name={}", key.name);
        let found = api.list(&ListParams::default().fields(&named)).await?;
        if let Some(object) = found.items.into_iter().next()
            // The object may be selected again, without our cache having caught up yet.
            && api.list_metadata(&self.cache.selection().list_params(&named)).await?.items.is_empty()
        {
            let action = match handling {
                Unselected::CleanUp => self.clean_up(Arc::new(object)).await?,
                Unselected::Release | Unselected::Keep => self.release(object).await?,
            };
            if action.requeue_after().is_some() {
                return Ok(Some(action));
            }
            tracing::info!(
                ?handling,
                "object has left the selection, its finalizers are removed"
            );
        }
        self.departures.remove(key);
        Ok(None)
    }

    async fn release(&self, mut object: K) -> Result<Action, Error> {
        for Finalizer { name, .. } in &self.handlers.finalizers {
            if let Some(index) = object.finalizers().iter().position(|present| present == name) {
                match self.remove_finalizer(&object, index, name).await? {
                    Some(left) => object = left,
                    None => break,
                }
            }
        }
        Ok(Action::await_change())
    }

    /// Finds objects that left the selection while the process was down or their range was moving.
    pub(super) async fn find_departed(self: Arc<Self>) {
        let mut extended = self.shards.as_ref().map(|_| self.cache.extended());
        let find_all = async {
            loop {
                if let Some(extended) = &mut extended {
                    extended.borrow_and_update();
                }
                self.find_departed_once().await;
                match &mut extended {
                    // Wait until the cache has listed additional ranges. Any earlier, and we would
                    // miss objects that leave the selection before the watch delivers them.
                    Some(extended) => drop(extended.changed().await),
                    None => return,
                }
            }
        };
        // Don't return before the queue is closed, since the manager would treat that as a failure.
        let find_all = async {
            find_all.await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = find_all => {}
            () = self.queue.closed() => {}
        }
    }

    async fn find_departed_once(&self) {
        for namespace in self.ctx.caches().namespaces_of(&self.cache) {
            while let Err(error) = self.find_departed_in(namespace.as_deref()).await {
                let (kind, error) = (self.cache.kind().name(), describe_causes(&error));
                tracing::warn!(
                    kind,
                    error,
                    "failed to look for objects that have left the selection, retrying"
                );
                tokio::time::sleep(add_jitter(RETRY)).await;
            }
        }
    }

    async fn find_departed_in(&self, namespace: Option<&str>) -> Result<(), kube::Error> {
        let api = self.cache.kind().api(self.ctx.client(), namespace);
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let listed = api.list_metadata(&page).await?;
            for meta in listed.items.iter().map(|item| &item.metadata) {
                let key = Key::of_meta(meta);
                let is_ours = |shards: &Shards| shards.owns_hash(self.shard_by.hash_of(meta));
                // Selected objects are reconciled anyway.
                if self.shards.as_ref().is_none_or(is_ours)
                    && self.cache.get(&key).is_none()
                    && self.departures.insert(meta, self.shard_by)
                {
                    self.queue.add(key, LOW);
                }
            }
            match listed.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page.continue_token = Some(token),
                None => return Ok(()),
            }
        }
    }
}
