//! Controllers, which consist of a reconcile function, settings, and the objects to watch.
//!
//! A [`Controller`] does nothing until it is started by a [`Manager`](crate::Manager). It then
//! receives events from its [caches](crate::cache), maps each of them to the keys of the objects to
//! reconcile, and adds those to a [queue](crate::queue). A fixed number of workers take keys from
//! the queue. The result of a reconcile determines when its key is requeued. Workers catch panics.
//!
//! We do not use kube's `Controller` because it lacks some features: it stops at the first panic,
//! does not prioritize or limit reconciles, doesn't back off per object, and does not report
//! deletions.

mod handlers;
mod late_watch;
mod mapping;
mod mapping_errors;
mod prepare;
mod primary;
mod settings;
mod unselected;
mod watch;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;

use crate::action::Action;
use crate::backoff::Backoff;
use crate::cache::{Caches, Index, Need, Selection};
use crate::cluster::Cluster;
use crate::ctx::Ctx;
use crate::error::{BoxError, Error};
use crate::object::{DynamicKind, Key, Kind, Object, Watchable};
use crate::predicate::Predicate;
use crate::queue::Workqueue;
use crate::rate_limiter::RateLimiter;
use crate::request::Request;
use crate::shards::Division;

use handlers::{Handlers, box_reconcile};
pub use late_watch::{Watches, Watching};
pub(crate) use mapping::note_in_callback;
pub use mapping::{ByChange, ByFunction, ByMap, ByOwner, ByTryMap, Maps, MapsLate};
pub(crate) use mapping_errors::MappingErrors;
pub(crate) use prepare::{AnyController, ManagerResources, PreparedController};
pub use unselected::Unselected;
pub use watch::Watch;
pub(crate) use worker::polls::Polls;

const DEFAULT_CONCURRENCY: usize = 4;

/// Reconciles all objects of kind `K` with a function that has access to the shared state `S`.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// # use rbuilder::{Action, Controller, Ctx, Result};
/// async fn reconcile(object: Arc<ConfigMap>, ctx: Ctx<()>) -> Result {
///     Ok(Action::await_change())
/// }
///
/// let controller = Controller::new(reconcile, ()).owns::<Deployment>().concurrency(8);
/// ```
#[must_use = "pass it to `Manager::controller`"]
pub struct Controller<K: Watchable, S> {
    name: String,
    former_names: Vec<String>,
    kind: Kind<K>,
    selection: Selection,
    unselected: Option<Unselected>,
    need: Need,
    filter: Option<Predicate<K>>,
    state: S,
    concurrency: usize,
    everywhere: bool,
    /// How objects are distributed over the replicas of a sharded operator.
    division: Division,
    timeout: Option<Duration>,
    recover_panics: bool,
    resync: Option<Duration>,
    backoff: Backoff,
    limiter: Option<Box<dyn RateLimiter<ObjectRef<K>>>>,
    handlers: Handlers<K, S>,
    watches: Vec<Subscribe<K, S>>,
    triggers: Vec<BoxStream<'static, Request<K>>>,
    /// Request caches for kinds that are read but not watched.
    reads: Vec<RequestCache>,
    /// Kinds of those caches that are only known at runtime.
    kinds: Vec<DynamicKind>,
}

type RequestCache = Box<dyn FnOnce(&Caches) + Send>;

type Subscribe<K, S> = Box<dyn FnOnce(&Kind<K>, &Arc<Workqueue<Key>>, &Ctx<S>) + Send>;

impl<K: Object, S: Send + Sync + 'static> Controller<K, S> {
    /// Creates a controller for objects of kind `K`, which is inferred from the reconcile function.
    ///
    /// The function is called in any of these cases:
    ///
    /// - For each object, when the controller is started.
    /// - When the object changes, or an object that is [owned](Self::owns) by it or
    ///   [watched](Self::watches) for it.
    /// - After the delay that was requested with [`Action::requeue`].
    /// - After an error, with exponential [backoff](Self::backoff), until the reconcile succeeds.
    ///
    /// There's never more than one concurrent reconcile of the same object. Error types can be
    /// [`Error`](crate::Error), any other `std::error::Error`, or a boxed error like
    /// `anyhow::Error`. A panic is treated like an error.
    ///
    /// The object passed to the function comes from a cache. It may lag behind the cluster, but it
    /// includes all previous writes through [`Ctx`]. A conflict (409) due to a stale cache is
    /// retried. It is only logged as an error if it persists, starting with the fifth conflict in a
    /// row.
    ///
    /// Objects aren't reconciled while they are being deleted. Otherwise, a reconcile could
    /// recreate objects that the garbage collector deletes along with their owner, or adopt objects
    /// that should be orphaned. Handle deletions in the cleanup function of a
    /// [`finalizer`](Self::finalizer). See also
    /// [`reconciles_terminating`](Self::reconciles_terminating), and
    /// [`on_deleted`](Self::on_deleted) for objects that are already gone.
    pub fn new<F, Fut, E>(reconcile: F, state: S) -> Self
    where
        F: Fn(Arc<K>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self::of_kind(Kind::of_type(), reconcile, state)
    }
}

impl<S: Send + Sync + 'static> Controller<DynamicObject, S> {
    /// Like [`new`](Self::new), but for a kind that is only known at runtime.
    pub fn dynamic<F, Fut, E>(kind: &DynamicKind, reconcile: F, state: S) -> Self
    where
        F: Fn(Arc<DynamicObject>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self::of_kind(kind.into(), reconcile, state)
    }
}

impl<K: Watchable, S: Send + Sync + 'static> Controller<K, S> {
    fn of_kind<F, Fut, E>(kind: Kind<K>, reconcile: F, state: S) -> Self
    where
        F: Fn(Arc<K>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self {
            name: kind.name().to_lowercase(),
            former_names: Vec::new(),
            kind,
            selection: Selection::all(),
            unselected: None,
            need: Need::AtStart,
            filter: None,
            state,
            concurrency: DEFAULT_CONCURRENCY,
            everywhere: false,
            division: Division::default(),
            timeout: None,
            recover_panics: true,
            resync: None,
            backoff: Backoff::default(),
            limiter: None,
            handlers: Handlers {
                reconcile: box_reconcile(reconcile),
                reconciles_terminating: false,
                finalizers: Vec::new(),
                on_deleted: None,
                on_undecodable: None,
            },
            watches: Vec::new(),
            triggers: Vec::new(),
            reads: Vec::new(),
            kinds: Vec::new(),
        }
    }

    /// Watches objects of kind `C`. Whenever one of them changes, its owner is reconciled.
    ///
    /// The owner is the object in the owner reference with `controller: true`, which
    /// [`Ctx::apply_owned`](crate::Ctx::apply_owned) sets. If the owner changes, both the old and
    /// the new one are reconciled. Only the metadata of the owned objects is watched and cached.
    pub fn owns<C: Object>(self) -> Self {
        self.watch(Watch::<PartialObjectMeta<C>>::owned())
    }

    /// Like [`owns`](Self::owns), but for a kind that is only known at runtime.
    pub fn owns_dynamic(self, kind: &DynamicKind) -> Self {
        self.watch(Watch::owned_dynamic(kind))
    }

    /// Watches objects of kind `W`. Whenever one of them changes, the objects returned by `map` are
    /// reconciled.
    ///
    /// On update, `map` is called with both the old and the new version of the object. It is also
    /// called with deleted objects. `map` must not block, since it holds up every event for kind
    /// `W`. To find out what has changed, or to set a priority, use [`Watch::mapped_changes`]. If it
    /// reads a cache, use [`try_watches`](Self::try_watches).
    pub fn watches<W, F>(self, map: F) -> Self
    where
        W: Object,
        F: Fn(&W, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
    {
        self.watch(Watch::mapped(map))
    }

    /// Like [`watches`](Self::watches), with a function that can fail. See [`Watch::try_mapped`].
    pub fn try_watches<W, F>(self, map: F) -> Self
    where
        W: Object,
        F: Fn(&W, &Ctx<S>) -> Result<Vec<ObjectRef<K>>, Error> + Send + Sync + 'static,
    {
        self.watch(Watch::try_mapped(map))
    }

    /// Adds a [`Watch`]. This is the general form of [`owns`](Self::owns) and
    /// [`watches`](Self::watches), and supports predicates, selections, and kinds that are only
    /// known at runtime.
    pub fn watch<W: Watchable, M: Maps<K, W, S>>(mut self, watch: Watch<W, M>) -> Self {
        self.watches
            .push(Box::new(|kind, queue, ctx| watch.subscribe(kind, queue, ctx)));
        self
    }

    /// Watches objects in all additional clusters of the manager, including clusters that are
    /// [added](crate::Clusters::add) later. `watch` is called once per cluster.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Node};
    /// # use rbuilder::{Action, Cluster, Controller, Ctx, ObjectRef, Result, Watch};
    /// # async fn reconcile(object: Arc<ConfigMap>, ctx: Ctx<()>) -> Result { Ok(Action::await_change()) }
    /// /// Reconciles the ConfigMap with the name of the cluster when a node of it changes.
    /// let controller = Controller::new(reconcile, ()).watch_clusters(|cluster: &Cluster| {
    ///     let settings = ObjectRef::<ConfigMap>::new(cluster.name()).within("fleet");
    ///     Watch::mapped(move |_: &Node, _: &Ctx<()>| vec![settings.clone()])
    /// });
    /// ```
    pub fn watch_clusters<W, M>(
        mut self,
        watch: impl Fn(&Cluster) -> Watch<W, M> + Send + Sync + 'static,
    ) -> Self
    where
        W: Watchable,
        M: Maps<K, W, S> + ByFunction,
    {
        self.watches.push(Box::new(|kind, queue, ctx| {
            let (kind, queue, clusters) = (kind.clone(), Arc::clone(queue), ctx.clusters().clone());
            let ctx = ctx.clone();
            clusters.on_added(move |cluster| {
                watch(cluster).in_cluster(cluster).subscribe(&kind, &queue, &ctx);
            });
        }));
        self
    }

    /// Only reconciles on events of the controller's own kind that pass the predicate. With
    /// multiple predicates, an event must pass all of them.
    ///
    /// Predicates also apply to the initial events at startup, and to deletions, including the call
    /// of [`on_deleted`](Self::on_deleted).
    pub fn filter(mut self, predicate: Predicate<K>) -> Self {
        self.filter = Some(match self.filter {
            Some(filter) => filter.and(predicate),
            None => predicate,
        });
        self
    }

    /// Only watches, caches and reconciles the selected objects. You can use this to split a kind's
    /// objects between multiple controllers.
    ///
    /// To the controller, an object that leaves the selection appears deleted. If the controller
    /// has a [`finalizer`](Self::finalizer), use [`when_unselected`](Self::when_unselected) to
    /// specify what happens to such objects.
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Specifies how to handle objects that leave the [selection](Self::selecting) while they have
    /// one of the controller's [finalizers](Self::finalizer). Unless the finalizer is removed, they
    /// can't be deleted.
    ///
    /// Required if the controller has a finalizer and its objects can leave the selection because a
    /// label or field changes; otherwise the manager refuses to start. See [`Unselected`] for the
    /// possible values.
    ///
    /// Unless you use [`Keep`](Unselected::Keep), no other controller may have the same finalizers,
    /// because the controller lists the metadata of all objects at startup and handles every object
    /// that has one of its finalizers but is not selected.
    pub fn when_unselected(mut self, handling: Unselected) -> Self {
        self.unselected = Some(handling);
        self
    }

    /// Reports the process as not ready while the watch of the controller's own kind receives no
    /// data. For other kinds, use [`Watch::required`].
    pub fn required(mut self) -> Self {
        self.need = Need::Always;
        self
    }

    /// Reconciles objects from a stream, e.g. from the [`Triggers`](crate::trigger::Triggers) of a
    /// channel. Items are either [`ObjectRef`]s, or [`Request`]s if you want to set a priority and
    /// a delay.
    ///
    /// The stream is polled once the workers are running. When it ends, the controller keeps
    /// running.
    pub fn triggers(mut self, requests: impl Stream<Item: Into<Request<K>>> + Send + 'static) -> Self {
        self.triggers.push(requests.map(Into::into).boxed());
        self
    }

    /// Reconciles all objects periodically, with low priority. Disabled by default.
    ///
    /// There's no need for this if you only depend on objects in the cluster, because they're
    /// watched. It is intended for external state that can't notify you of changes. Adds up to 10%
    /// jitter to the period so that controllers don't all resync at once.
    pub fn resync_every(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Caches objects of kind `C`, but doesn't reconcile anything when they change. You can read
    /// them with [`Ctx::cached`](crate::Ctx::cached).
    pub fn reads<C: Object>(mut self) -> Self {
        self.reads.push(Box::new(|caches| {
            caches.of::<C>(&Kind::of_type(), &Selection::all());
        }));
        self
    }

    /// Like [`reads`](Self::reads), but for a kind that is only known at runtime. Read the cache
    /// with [`Ctx::cached_dynamic`](crate::Ctx::cached_dynamic).
    pub fn reads_dynamic(mut self, kind: &DynamicKind) -> Self {
        let cached = Kind::<DynamicObject>::from(kind);
        self.kinds.push(kind.clone());
        self.reads.push(Box::new(move |caches| {
            caches.of(&cached, &Selection::all());
        }));
        self
    }

    /// Caches objects of kind `C` with an index. Given one of the values returned by `values`,
    /// [`Cached::by`](crate::Cached::by) returns the corresponding objects.
    ///
    /// Index names are shared by all users of the cache. If a name is used twice, the first index
    /// wins.
    pub fn index<C: Object>(
        mut self,
        name: impl Into<String>,
        values: impl Fn(&C) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let index = Index::new(name.into(), values);
        self.reads.push(Box::new(|caches| {
            caches
                .of::<C>(&Kind::of_type(), &Selection::all())
                .add_index(index);
        }));
        self
    }

    /// Like [`index`](Self::index), but for a kind that is only known at runtime. Read the cache
    /// with [`Ctx::cached_dynamic`](crate::Ctx::cached_dynamic).
    pub fn index_dynamic(
        mut self,
        kind: &DynamicKind,
        name: impl Into<String>,
        values: impl Fn(&DynamicObject) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let (cached, index) = (Kind::<DynamicObject>::from(kind), Index::new(name.into(), values));
        self.kinds.push(kind.clone());
        self.reads.push(Box::new(move |caches| {
            caches.of(&cached, &Selection::all()).add_index(index);
        }));
        self
    }
}
