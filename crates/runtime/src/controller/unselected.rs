//! Objects that leave the selection of a controller while they have its finalizers.
//!
//! To the watch of a selection, an object that leaves it looks deleted, and the controller hears no
//! more of it. If nobody removed the controller's finalizer, the object could never be deleted.
//! Therefore, the controller asks the API server about each object that its watch reports as
//! deleted with one of its finalizers. If the object still exists, it is handled according to
//! [`Unselected`]. A list of the kind at startup finds the objects that left while the process was
//! not running. With shards, further lists find those that left while their range moved.

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
use crate::error::Error;
use crate::hash::HashMap;
use crate::object::{Key, Watchable};
use crate::queue::LOW;
use crate::shards::{ShardBy, Shards};

/// Page size of the list at startup.
const PAGE: u32 = 500;
/// Delay before retrying that list.
const RETRY: Duration = Duration::from_secs(10);

/// What happens to an object that leaves the [selection](super::Controller::selecting) of its controller with one of the
/// controller's [finalizers](super::Controller::finalizer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unselected {
    /// The controller runs the cleanups and removes its finalizers, as if the object were being
    /// deleted. Suits a label that marks objects as managed by the operator.
    CleanUp,
    /// The controller removes its finalizers without running a cleanup: whatever belongs to the
    /// object stays.
    Release,
    /// The controller does nothing, because another controller with the same finalizers selects the
    /// object. Suits a kind whose objects are divided between several controllers.
    ///
    /// If no other controller does, the object cannot be deleted until somebody removes the
    /// finalizers.
    Keep,
}

/// The objects that have left the selection of a controller and that it has yet to handle.
pub(super) struct Departures {
    /// What to do; `None` if no object can leave or nothing needs to be done.
    handling: Option<Unselected>,
    finalizers: Vec<String>,
    /// With the hashes that decide about their ranges.
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

    /// Returns `true` if objects that leave are handled.
    pub(super) fn are_handled(&self) -> bool {
        self.handling.is_some()
    }

    /// Records the effect of an event. Returns `true` if the object may have left the selection.
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

    /// Records an object if it has one of the finalizers, and returns whether it has.
    fn insert(&self, meta: &ObjectMeta, shard_by: ShardBy) -> bool {
        let mut present = meta.finalizers.iter().flatten();
        let is_held = present.any(|present| self.finalizers.contains(present));
        if is_held {
            self.lock().insert(Key::of_meta(meta), shard_by.hash_of(meta));
        }
        is_held
    }

    /// Returns the hash of an object that is yet to be handled.
    pub(super) fn hash_of(&self, key: &Key) -> Option<u64> {
        self.lock().get(key).copied()
    }

    /// Leaves an object to another replica.
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
    /// Handles an object that may have left the selection. Returns an action if it must be handled
    /// again.
    pub(super) async fn handle_departure(&self, key: &Key) -> Result<Option<Action>, Error> {
        let Some(handling) = self.departures.handling else {
            return Ok(None);
        };
        if self.departures.hash_of(key).is_none() {
            return Ok(None);
        }
        let api = self.cache.kind().api(self.ctx.client(), key.namespace.as_deref());
        // A list by name, because a controller's role has `list` on its kind but may lack `get`.
        let named = format!("metadata.name={}", key.name);
        let found = api.list(&ListParams::default().fields(&named)).await?;
        if let Some(object) = found.items.into_iter().next()
            // The object may be selected again without the cache showing it yet.
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

    /// Removes the controller's finalizers from an object.
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

    /// Finds the objects that left the selection while the process was not running, or while their
    /// range moved.
    pub(super) async fn find_departed(self: Arc<Self>) {
        let mut extended = self.shards.as_ref().map(|_| self.cache.extended());
        let find_all = async {
            loop {
                if let Some(extended) = &mut extended {
                    extended.borrow_and_update();
                }
                self.find_departed_once().await;
                match &mut extended {
                    // Look again whenever the cache has listed further ranges, and not earlier: the
                    // watch does not report objects that have left before that.
                    Some(extended) => drop(extended.changed().await),
                    None => return,
                }
            }
        };
        // A worker that exits before the queue is closed would count as a failure.
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
                let kind = self.cache.kind().name();
                tracing::warn!(kind, %error, "failed to look for objects that have left the selection, retrying");
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
