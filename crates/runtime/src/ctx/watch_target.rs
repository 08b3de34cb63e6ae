//! Information about the controller, for watches added at runtime.
//!
//! Stored in `Ctx`, but created and used by `controller`. It's defined here because `controller`
//! depends on `ctx`, and not the other way around.

use std::any::Any;
use std::sync::{Arc, Mutex};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use rbuilder_kubernetes::gvk;

use crate::cache::CacheId;
use crate::hash::HashMap;
use crate::object::{Key, Kind, Watchable};
use crate::queue::Workqueue;

pub(crate) type LateWatches = Mutex<LateWatchesById>;

pub(crate) type LateWatchesById = HashMap<(String, CacheId), LateWatch>;

pub(crate) struct LateWatch {
    pub(crate) remove: Box<dyn FnOnce() + Send>,
    pub(crate) describe: Box<dyn Fn() -> ActiveWatch + Send>,
}

/// Describes a watch that a controller has [added](crate::Ctx::watch) at runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActiveWatch {
    /// Name passed to [`Ctx::watch`](crate::Ctx::watch).
    pub name: String,
    /// Kind and API version, e.g. `Gateway (gateway.networking.k8s.io/v1)`.
    pub kind: String,
    /// The formatted [selection](crate::Selection). Empty if all objects are selected.
    pub selection: String,
    /// Whether the controller has received all existing objects.
    pub synced: bool,
    /// The most recent error, if the watch hasn't synced.
    pub last_error: Option<String>,
}

/// Type-erased kind and queue of a controller.
#[doc(hidden)]
pub struct WatchTarget {
    kind: GroupKind,
    /// A `Kind<K>`.
    typed: Box<dyn Any + Send + Sync>,
    queue: Arc<Workqueue<Key>>,
}

impl WatchTarget {
    pub(crate) fn new<K: Watchable>(kind: &Kind<K>, queue: &Arc<Workqueue<Key>>) -> Self {
        Self {
            kind: GroupKind::of(kind),
            typed: Box::new(kind.clone()),
            queue: Arc::clone(queue),
        }
    }

    pub(crate) fn group_kind(&self) -> &GroupKind {
        &self.kind
    }

    pub(crate) fn kind<K: Watchable>(&self) -> Option<&Kind<K>> {
        self.typed.downcast_ref()
    }

    pub(crate) fn queue(&self) -> &Arc<Workqueue<Key>> {
        &self.queue
    }
}

/// The part of a kind that owner references are matched against.
#[derive(Clone)]
pub(crate) struct GroupKind {
    group: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
}

impl GroupKind {
    pub(crate) fn of<K: Watchable>(kind: &Kind<K>) -> Self {
        Self {
            group: K::group(&kind.dynamic).into_owned(),
            kind: kind.name(),
            namespaced: kind.namespaced,
        }
    }

    pub(crate) fn matches(&self, owner: &OwnerReference) -> bool {
        // Ignore the version, as the garbage collector does.
        let group = gvk::group_of(&owner.api_version);
        owner.kind == self.kind && group == self.group
    }
}
