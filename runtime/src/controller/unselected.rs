//! Objects that leave the selection of a controller with its finalizers.
//!
//! To the watch of a selection, an object that leaves it is deleted: the controller hears nothing of it any more. With a
//! finalizer that nobody removes, the object could never be deleted. So the controller asks the API server about each
//! object that its watch reports as deleted with one of its finalizers, and does what [`Unselected`] says if the object is
//! still there. Objects that left while the process was not running are found by one list of the kind at the start.

use std::collections::HashSet;
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
use crate::object::{Key, Watchable};
use crate::queue::LOW;

/// Number of objects in a page of the list at the start.
const PAGE: u32 = 500;
/// Time until that list is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// What happens to an object that leaves the [selection](super::Controller::selecting) of its controller with one of the
/// controller's [finalizers](super::Controller::finalizer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unselected {
    /// The controller runs the cleanups and removes its finalizers, as if the object were being deleted. For a label that
    /// says that the operator manages the object.
    CleanUp,
    /// The controller removes its finalizers, and runs no cleanup: whatever belongs to the object stays.
    Release,
    /// The controller does nothing, because another one with the same finalizers selects the object. For objects that
    /// several controllers divide between them.
    ///
    /// If none does, the object cannot be deleted until somebody removes the finalizers.
    Keep,
}

/// The objects of one controller that have left its selection, as far as it does anything about them.
pub(super) struct Departures {
    /// What to do; `None` if no object can leave, or nothing is to be done.
    handling: Option<Unselected>,
    finalizers: Vec<String>,
    departed: Mutex<HashSet<Key>>,
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

    /// Returns `true` if something is done about objects that leave.
    pub(super) fn are_handled(&self) -> bool {
        self.handling.is_some()
    }

    /// Records what an event says about an object. Returns `true` if the object may have left the selection.
    pub(super) fn note<K: Watchable>(&self, event: &CacheEvent<K>) -> bool {
        if self.handling.is_none() {
            return false;
        }
        match event {
            CacheEvent::Change(Change::Deleted(old)) => self.insert(old.meta()),
            CacheEvent::UndecodableDeleted(old) => self.insert(old.object.metadata()),
            CacheEvent::Change(Change::Applied { new, .. }) => self.remove(&Key::of(&**new)),
            CacheEvent::Undecodable { new, .. } => self.remove(&Key::of_meta(new.object.metadata())),
        }
    }

    /// Returns `true` if the object has one of the finalizers.
    fn insert(&self, meta: &ObjectMeta) -> bool {
        let mut present = meta.finalizers.iter().flatten();
        let is_held = present.any(|present| self.finalizers.contains(present));
        if is_held {
            self.lock().insert(Key::of_meta(meta));
        }
        is_held
    }

    fn remove(&self, key: &Key) -> bool {
        self.lock().remove(key);
        false
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.departed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Watchable, S: Send + Sync + 'static> Worker<K, S> {
    /// Handles an object that may have left the selection. Returns an action if it is not done with it.
    pub(super) async fn handle_departure(&self, key: &Key) -> Result<Option<Action>, Error> {
        let Some(handling) = self.departures.handling else {
            return Ok(None);
        };
        if !self.departures.lock().contains(key) {
            return Ok(None);
        }
        let api = self.cache.kind().api(self.ctx.client(), key.namespace.as_deref());
        // Lists with one name, because a controller's role has `list` on its kind, and may not have `get`.
        let named = format!("metadata.name={}", key.name);
        let found = api.list(&ListParams::default().fields(&named)).await?;
        if let Some(object) = found.items.into_iter().next()
            // The cache may not show yet that it is selected again.
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

    /// Removes the finalizers of the controller.
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

    /// Finds the objects that left the selection while the process was not running.
    pub(super) async fn find_departed(self: Arc<Self>) {
        let find_all = async {
            for namespace in self.ctx.caches().namespaces_of(&self.cache) {
                while let Err(error) = self.find_departed_in(namespace.as_deref()).await {
                    let kind = self.cache.kind().name();
                    tracing::warn!(kind, %error, "failed to look for objects that have left the selection, retrying");
                    tokio::time::sleep(add_jitter(RETRY)).await;
                }
            }
        };
        // A worker that ended before the queue is closed would be a failure.
        let find_all = async {
            find_all.await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = find_all => {}
            () = self.queue.closed() => {}
        }
    }

    async fn find_departed_in(&self, namespace: Option<&str>) -> Result<(), kube::Error> {
        let api = self.cache.kind().api(self.ctx.client(), namespace);
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let listed = api.list_metadata(&page).await?;
            for meta in listed.items.iter().map(|item| &item.metadata) {
                let key = Key::of_meta(meta);
                // One that is selected is reconciled anyway.
                if self.cache.get(&key).is_none() && self.departures.insert(meta) {
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
