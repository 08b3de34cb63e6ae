//! The controller that a watch added at run time belongs to.
//!
//! `Ctx` stores it, while `controller` creates and uses it. It is defined here so that `controller`
//! depends on `ctx` and not vice versa.

use std::any::Any;
use std::sync::{Arc, Mutex};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::cache::CacheId;
use crate::hash::HashMap;
use crate::object::{Key, Kind, Watchable};
use crate::queue::Workqueue;

/// The watches added to one controller at run time.
pub(crate) type LateWatches = Mutex<LateWatchesById>;

/// Watches by name and cache.
pub(crate) type LateWatchesById = HashMap<(String, CacheId), LateWatch>;

/// A watch added at run time.
pub(crate) struct LateWatch {
    pub(crate) remove: Box<dyn FnOnce() + Send>,
    pub(crate) describe: Box<dyn Fn() -> ActiveWatch + Send>,
}

/// A snapshot of a watch that a controller has [added](crate::Ctx::watch) at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActiveWatch {
    /// The name under which it was added.
    pub name: String,
    /// Kind and API version, such as `Gateway (gateway.networking.k8s.io/v1)`.
    pub kind: String,
    /// The selection, as it [displays](crate::Selection); empty for all objects.
    pub selection: String,
    /// Whether the existing objects are in the cache and have been delivered to the controller.
    pub synced: bool,
    /// The last error of a watch that is not synced.
    pub last_error: Option<String>,
}

/// The kind and queue of the controller to which a watch is added at run time, with the kind's type erased.
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

    /// Returns the kind if its type is `K`.
    pub(crate) fn kind<K: Watchable>(&self) -> Option<&Kind<K>> {
        self.typed.downcast_ref()
    }

    pub(crate) fn queue(&self) -> &Arc<Workqueue<Key>> {
        &self.queue
    }
}

/// Group, name and scope of a kind, for matching owner references.
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

    /// Returns `true` if `owner` refers to this kind. Ignores the version, like the garbage
    /// collector.
    pub(crate) fn matches(&self, owner: &OwnerReference) -> bool {
        let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        owner.kind == self.kind && group == self.group
    }
}
