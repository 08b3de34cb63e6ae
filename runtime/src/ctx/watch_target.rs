//! The controller that a watch added at run time belongs to.
//!
//! `Ctx` stores it, and `controller` fills and uses it. It lives here so that `controller` depends on `ctx` and not the
//! other way around.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::cache::CacheId;
use crate::object::{Key, Kind, Watchable};
use crate::queue::Workqueue;

/// The watches added to one controller at run time, by name and cache, with the functions that remove them.
pub(crate) type LateWatches = Mutex<HashMap<(String, CacheId), Box<dyn FnOnce() + Send>>>;

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

    /// Returns the kind if it is that of `K`.
    pub(crate) fn kind<K: Watchable>(&self) -> Option<&Kind<K>> {
        self.typed.downcast_ref()
    }

    pub(crate) fn queue(&self) -> &Arc<Workqueue<Key>> {
        &self.queue
    }
}

/// Group, kind and scope of a kind, as needed to match owner references.
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

    /// Returns `true` if `owner` refers to this kind, in any version of its group, as in the garbage collector.
    pub(crate) fn matches(&self, owner: &OwnerReference) -> bool {
        let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        owner.kind == self.kind && group == self.group
    }
}
