//! Controllers: a reconcile function, what it looks at, and how it is run.
//!
//! A [`Controller`] is a value; nothing happens until a [`Manager`](crate::Manager) starts it. It hears of
//! changes from [caches](crate::cache), turns each into the key of the object to reconcile, and lets a fixed
//! number of workers take keys from its [queue](crate::queue). What a reconcile returns decides when its key
//! comes back; what it panics with stays in the worker.

mod watch;
mod worker;

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt};
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::events::Reporter;
use kube::runtime::reflector::ObjectRef;
use kube::{Client, ResourceExt};

use crate::action::Action;
use crate::cache::{Cache, Caches, Change, Index, Selection};
use crate::ctx::Ctx;
use crate::error::{BoxError, Error};
use crate::events;
use crate::metrics::Metrics;
use crate::object::{DynamicKind, Key, Kind, Object, Watchable};
use crate::predicate::Predicate;
use crate::queue::{LOW, NORMAL, Workqueue};
use crate::shutdown::Shutdown;

use watch::wanted;
pub use watch::{ByMap, ByOwner, Maps, MapsLate, Watch};
pub(crate) use watch::{Reconciled, is_mapping};
use worker::Worker;

/// Reconciles at a time, unless [`Controller::concurrency`] says otherwise.
const DEFAULT_CONCURRENCY: usize = 4;

/// Runs one reconcile function for the objects of kind `K`, with the state `S`.
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
#[must_use = "hand it to `Manager::controller`"]
pub struct Controller<K: Watchable, S> {
    name: String,
    kind: Kind<K>,
    selection: Selection,
    filter: Option<Predicate<K>>,
    state: S,
    concurrency: usize,
    everywhere: bool,
    timeout: Option<Duration>,
    recover_panics: bool,
    resync: Option<Duration>,
    handlers: Handlers<K, S>,
    watches: Vec<Subscribe<K, S>>,
    triggers: Vec<BoxStream<'static, ObjectRef<K>>>,
    /// Each asks for a cache that the controller only reads.
    reads: Vec<Ask>,
}

/// Asks for a cache.
type Ask = Box<dyn FnOnce(&Caches) + Send>;

/// Makes a controller hear of one more kind.
type Subscribe<K, S> = Box<dyn FnOnce(&Kind<K>, &Arc<Workqueue<Key>>, &Ctx<S>) + Send>;

/// What a controller calls.
struct Handlers<K: Watchable, S> {
    reconcile: Reconcile<Arc<K>, S>,
    finalizer: Option<(String, Reconcile<Arc<K>, S>)>,
    on_deleted: Option<Reconcile<ObjectRef<K>, S>>,
}

/// A reconcile function or one of its kin, for one argument type.
type Reconcile<T, S> =
    Box<dyn Fn(T, Ctx<S>) -> Pin<Box<dyn Future<Output = Result<Action, Error>> + Send>> + Send + Sync>;

fn boxed<T, S, F, Fut, E>(reconcile: F) -> Reconcile<T, S>
where
    F: Fn(T, Ctx<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, E>> + Send + 'static,
    E: Into<BoxError>,
{
    Box::new(move |argument, ctx| {
        let reconciled = reconcile(argument, ctx);
        Box::pin(async move { reconciled.await.map_err(Error::new) })
    })
}

impl<K: Object, S: Send + Sync + 'static> Controller<K, S> {
    /// A controller for the objects of kind `K`, which the reconcile function takes.
    ///
    /// The function is called for each object at start, then whenever the object or anything
    /// [owned](Self::owns) or [watched](Self::watches) for it changes, after the delay it asks for with
    /// [`Action::requeue`], and after a failure with growing delays (5 ms, doubling to 1000 s, until it
    /// succeeds). It never runs twice at a time for one object. It gets the object from a cache, which may
    /// lag behind the cluster, though not behind what the process itself applied; a conflict (409) that comes of it is
    /// retried without being logged as an error.
    ///
    /// Its error type can be [`Error`](crate::Error), any `std::error::Error`, or a boxed one like
    /// `anyhow::Error`. A panic counts as an error.
    ///
    /// Objects that are being deleted are reconciled like others, unless there is a
    /// [`finalizer`](Self::finalizer). Deleted ones are not; see [`on_deleted`](Self::on_deleted).
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
    /// A controller for objects of a kind that is known only when the program runs; see [`new`](Self::new).
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
            kind,
            selection: Selection::all(),
            filter: None,
            state,
            concurrency: DEFAULT_CONCURRENCY,
            everywhere: false,
            timeout: None,
            recover_panics: true,
            resync: None,
            handlers: Handlers {
                reconcile: boxed(reconcile),
                finalizer: None,
                on_deleted: None,
            },
            watches: Vec::new(),
            triggers: Vec::new(),
            reads: Vec::new(),
        }
    }

    /// Reconciles the owner when an object of kind `C` changes whose controller it is.
    ///
    /// Only the owner reference with `controller: true` counts, which
    /// [`Ctx::apply_owned`](crate::Ctx::apply_owned) writes; when it moves, both owners are reconciled. Only the
    /// metadata of these objects is watched and kept.
    pub fn owns<C: Object>(self) -> Self {
        self.watch(Watch::<PartialObjectMeta<C>>::owned())
    }

    /// Reconciles the objects that `map` names when an object of kind `W` changes.
    ///
    /// `map` is called with the object before and after the change, and with what was deleted. It must not
    /// block: all changes of the kind wait for it.
    pub fn watches<W, F>(self, map: F) -> Self
    where
        W: Object,
        F: Fn(&W, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
    {
        self.watch(Watch::mapped(map))
    }

    /// Reconciles the objects that changes elsewhere concern: the long form of [`owns`](Self::owns) and
    /// [`watches`](Self::watches), with filters, selections and kinds known only at run time.
    pub fn watch<W: Watchable, M: Maps<K, W, S>>(mut self, watch: Watch<W, M>) -> Self {
        self.watches
            .push(Box::new(|kind, queue, ctx| watch.subscribe(kind, queue, ctx)));
        self
    }

    /// Only these changes of the controller's own objects reconcile them; called twice, only those that both
    /// want.
    ///
    /// What is not wanted is neither reconciled at start nor told to [`on_deleted`](Self::on_deleted).
    pub fn filter(mut self, wanted: Predicate<K>) -> Self {
        self.filter = Some(match self.filter {
            Some(filter) => filter.and(wanted),
            None => wanted,
        });
        self
    }

    /// Only these objects are watched, kept and reconciled. Several controllers can share the objects of a kind
    /// out among them.
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Reconciles the objects that a stream names, such as the [`Triggers`](crate::trigger::Triggers) of a channel.
    ///
    /// The stream is read from when the controller's workers start. It may end; the controller goes on.
    pub fn triggers(mut self, objects: impl Stream<Item = ObjectRef<K>> + Send + 'static) -> Self {
        self.triggers.push(objects.boxed());
        self
    }

    /// Reconciles every object again after about this long (up to a tenth more, so that controllers do not march
    /// in step), behind those that have changed; never unless said.
    ///
    /// It is for what changes outside the cluster without a trigger. What changes inside is watched.
    pub fn resync_every(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Keeps a cache of kind `C` for [`Ctx::cached`](crate::Ctx::cached), and reconciles nothing when it changes.
    pub fn reads<C: Object>(mut self) -> Self {
        self.reads.push(Box::new(|caches| {
            caches.of::<C>(&Kind::of_type(), &Selection::all());
        }));
        self
    }

    /// Keeps a cache of kind `C`, and in it an index: [`Cached::by`](crate::Cached::by) finds the objects for which
    /// `values` gave a value.
    ///
    /// The name is shared by all who read the cache; of two indexes of one name, the first counts.
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

    /// Reconciles at most `at_most` objects at a time; 4 unless said otherwise. Zero counts as one.
    pub fn concurrency(mut self, at_most: usize) -> Self {
        self.concurrency = at_most.max(1);
        self
    }

    /// Runs the controller in every replica, leading or not, as soon as the caches are filled.
    ///
    /// It is for what concerns the replica itself: its webhooks' certificates, a table in its memory. Two replicas that
    /// write one object fight over it.
    pub fn on_every_replica(mut self) -> Self {
        self.everywhere = true;
        self
    }

    /// Names the controller; the kind in lower case unless said otherwise.
    ///
    /// The name is the field manager of what the controller applies, the reporter of its events, and a label
    /// in logs and metrics. It must be unique in a manager.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Abandons a reconcile that takes longer, and counts it as failed; without limit unless said otherwise.
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Whether a panic in a reconcile is a failure of that object alone, logged, counted and tried again, which it is
    /// unless said otherwise. With `false`, it stops the manager, with an error that names the controller and the
    /// object: for operators that had rather end than go on after a bug.
    pub fn recover_panics(mut self, recover: bool) -> Self {
        self.recover_panics = recover;
        self
    }

    /// Keeps objects from being deleted until `cleanup` has succeeded.
    ///
    /// The finalizer `name` (such as `cache.example.com/finalizer`) is added to each object before it is
    /// first reconciled. Once the object is being deleted, `cleanup` is called in place of the reconcile
    /// function: with [`Action::await_change`] it says that it is done, and the finalizer is removed; with
    /// [`Action::requeue`] it asks to be called again. It must bear being called again after it was done.
    pub fn finalizer<F, Fut, E>(mut self, name: impl Into<String>, cleanup: F) -> Self
    where
        F: Fn(Arc<K>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.handlers.finalizer = Some((name.into(), boxed(cleanup)));
        self
    }

    /// Calls `forget` after an object is gone, for what the operator itself keeps about it.
    ///
    /// It is retried like a reconcile, and not called when an object of the same name has come meanwhile.
    /// What is deleted while no operator runs, it never hears of: to clean up the world outside, take a
    /// [`finalizer`](Self::finalizer).
    pub fn on_deleted<F, Fut, E>(mut self, forget: F) -> Self
    where
        F: Fn(ObjectRef<K>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.handlers.on_deleted = Some(boxed(forget));
        self
    }
}

/// A controller whose kind and state are not known any more; what a manager holds.
pub(crate) trait AnyController: Send {
    fn name(&self) -> &str;

    /// Subscribes to the caches, from then on filling the queue, and returns what is to be run once they are
    /// synced and this process is the leader.
    fn wire(self: Box<Self>, surroundings: &Surroundings<'_>) -> Wired;
}

/// What a manager has for its controllers.
pub(crate) struct Surroundings<'a> {
    pub(crate) client: Client,
    pub(crate) caches: &'a Caches,
    pub(crate) metrics: Metrics,
    /// Asks event publishers to finish.
    pub(crate) stop_events: Shutdown,
}

/// A controller ready to run.
pub(crate) struct Wired {
    pub(crate) name: String,
    /// Whether it runs in every replica.
    pub(crate) everywhere: bool,
    pub(crate) concurrency: usize,
    /// Each ends when the queue is closed and its current reconcile is done.
    pub(crate) workers: Vec<BoxFuture<'static, Result<(), Error>>>,
    pub(crate) close_queue: Box<dyn Fn() + Send + Sync>,
    pub(crate) events: BoxFuture<'static, ()>,
}

impl<K: Watchable, S: Send + Sync + 'static> AnyController for Controller<K, S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn wire(self: Box<Self>, surroundings: &Surroundings<'_>) -> Wired {
        let Self {
            name,
            kind,
            selection,
            filter,
            state,
            concurrency,
            everywhere,
            timeout,
            recover_panics,
            resync,
            handlers,
            watches,
            triggers,
            reads,
        } = *self;
        let caches = surroundings.caches;
        let (sender, events) = events::channel(
            surroundings.client.clone(),
            Reporter::from(name.as_str()),
            surroundings.metrics.events_dropped(&name),
            surroundings.stop_events.clone().requested(),
        );
        let queue = Arc::new(Workqueue::new(surroundings.metrics.queue(&name)));
        let ctx = Ctx::in_manager(
            surroundings.client.clone(),
            name.clone(),
            state,
            sender,
            caches.clone(),
            Some(Reconciled::new(&kind, &queue)),
        );
        let worker = Arc::new(Worker {
            cache: caches.of(&kind, &selection),
            queue: Arc::clone(&queue),
            gone: Arc::default(),
            timeout,
            recover_panics,
            handlers,
            metrics: surroundings.metrics.controller(&name, concurrency),
            ctx,
        });
        let counted = Arc::downgrade(&queue);
        surroundings.metrics.before_scrape(move || {
            if let Some(queue) = counted.upgrade() {
                queue.refresh_metrics();
            }
        });
        reads.into_iter().for_each(|read| read(caches));
        worker.watch_primary(filter);
        for watch in watches {
            watch(&kind, &queue, &worker.ctx);
        }
        let mut workers: Vec<BoxFuture<'static, Result<(), Error>>> = Vec::new();
        workers.extend((0..concurrency).map(|_| Arc::clone(&worker).work().boxed()));
        for objects in triggers {
            let triggered = trigger(objects, kind.clone(), Arc::clone(&queue));
            workers.push(triggered.map(Ok).boxed());
        }
        if let Some(period) = resync {
            workers.push(Arc::clone(&worker).resync(period).map(Ok).boxed());
        }
        Wired {
            name,
            everywhere,
            concurrency,
            workers,
            close_queue: Box::new(move || queue.close()),
            events,
        }
    }
}

/// Queues what a stream names, until the queue is closed.
async fn trigger<K: Watchable>(
    mut objects: BoxStream<'static, ObjectRef<K>>,
    kind: Kind<K>,
    queue: Arc<Workqueue<Key>>,
) {
    let queue_all = async {
        while let Some(object) = objects.next().await {
            queue.add(kind.key_of(&object), NORMAL);
        }
        // The stream has ended; the controller has not.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = queue_all => {}
        () = queue.closed() => {}
    }
}

impl<K: Watchable, S: Send + Sync + 'static> Worker<K, S> {
    /// Queues the objects of the controller's own kind when they change, and remembers those that are gone.
    fn watch_primary(&self, filter: Option<Predicate<K>>) {
        let (queue, gone) = (Arc::clone(&self.queue), Arc::clone(&self.gone));
        let remembers = self.handlers.on_deleted.is_some();
        self.cache.subscribe(Box::new(move |change| {
            if !wanted(filter.as_ref(), change) {
                return;
            }
            let (key, priority, is_gone) = match change {
                Change::Applied { new, initial, .. } => {
                    (Key::of(&**new), if *initial { LOW } else { NORMAL }, false)
                }
                Change::Deleted(old) => (Key::of(&**old), NORMAL, true),
            };
            if remembers {
                let mut gone = gone.lock().unwrap_or_else(PoisonError::into_inner);
                if is_gone {
                    gone.insert(key.clone());
                } else {
                    gone.remove(&key);
                }
            }
            queue.add(key, priority);
        }));
    }

    /// Queues every object, behind all others, each time the period has passed.
    async fn resync(self: Arc<Self>, period: Duration) {
        let mut round = 0;
        loop {
            round += 1;
            tokio::select! {
                () = tokio::time::sleep(jittered(period, round)) => {}
                () = self.queue.closed() => return,
            }
            for key in self.cache.keys() {
                self.queue.add(key, LOW);
            }
        }
    }
}

/// A period and up to a tenth of it, another each round and in each process.
fn jittered(period: Duration, round: u64) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    let share = RandomState::new().hash_one(round) % 1000;
    period + period.mul_f64(share as f64 / 10_000.0)
}
