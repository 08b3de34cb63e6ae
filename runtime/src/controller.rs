//! Controllers: a reconcile function, what it looks at, and how it is run.
//!
//! A [`Controller`] is a value; nothing happens until a [`Manager`](crate::Manager) starts it. It hears of
//! changes from [caches](crate::cache), turns each into the key of the object to reconcile, and lets a fixed
//! number of workers take keys from its [queue](crate::queue). What a reconcile returns decides when its key
//! comes back; what it panics with stays in the worker.

mod worker;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use kube::core::PartialObjectMeta;
use kube::runtime::events::Reporter;
use kube::runtime::reflector::ObjectRef;
use kube::{Client, ResourceExt};

use crate::action::Action;
use crate::cache::{Cache, Caches, Change};
use crate::ctx::Ctx;
use crate::error::{BoxError, Error};
use crate::events;
use crate::metrics::Metrics;
use crate::object::{Key, Object};
use crate::queue::{LOW, NORMAL, Priority, Workqueue};
use crate::shutdown::Shutdown;

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
pub struct Controller<K: Object, S> {
    name: String,
    state: S,
    concurrency: usize,
    timeout: Option<Duration>,
    handlers: Handlers<K, S>,
    watches: Vec<Subscribe<K, S>>,
}

/// Makes a controller hear of one more kind.
type Subscribe<K, S> = Box<dyn FnOnce(&mut Wiring<'_, K, S>) + Send>;

/// What a controller calls.
struct Handlers<K: Object, S> {
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
    /// lag behind the cluster; a conflict (409) that comes of it is retried without being logged as an error.
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
        Self {
            name: K::kind(&()).to_lowercase(),
            state,
            concurrency: DEFAULT_CONCURRENCY,
            timeout: None,
            handlers: Handlers {
                reconcile: boxed(reconcile),
                finalizer: None,
                on_deleted: None,
            },
            watches: Vec::new(),
        }
    }

    /// Reconciles the owner when an object of kind `C` changes whose controller it is.
    ///
    /// Only the owner reference with `controller: true` counts, which
    /// [`Ctx::apply_owned`](crate::Ctx::apply_owned) writes; when it moves, both owners are reconciled. Only the
    /// metadata of these objects is watched and kept.
    pub fn owns<C: Object>(mut self) -> Self {
        self.watches.push(Box::new(|wiring: &mut Wiring<'_, K, S>| {
            wiring.worker.ctx.knows_owned::<C>(wiring.caches.of());
            wiring.watch::<PartialObjectMeta<C>>(|object, _ctx| {
                owner_key::<K, _>(object).into_iter().collect()
            });
        }));
        self
    }

    /// Reconciles the objects that `map` names when an object of kind `W` changes.
    ///
    /// `map` is called with the object before and after the change, and with what was deleted. It must not
    /// block: all changes of the kind wait for it.
    pub fn watches<W, F>(mut self, map: F) -> Self
    where
        W: Object,
        F: Fn(&W, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
    {
        self.watches.push(Box::new(|wiring: &mut Wiring<'_, K, S>| {
            wiring.watch::<W>(move |object, ctx| {
                let references = map(object, ctx).into_iter();
                references
                    .map(|found| Key::in_scope::<K>(found.namespace.as_deref(), &found.name))
                    .collect()
            });
        }));
        self
    }

    /// Reconciles at most `at_most` objects at a time; 4 unless said otherwise. Zero counts as one.
    pub fn concurrency(mut self, at_most: usize) -> Self {
        self.concurrency = at_most.max(1);
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

/// The key of the `K` that is the controller of `object`.
fn owner_key<K: Object, C: kube::Resource>(object: &C) -> Option<Key> {
    let mut references = object.owner_references().iter();
    let controller = references.find(|reference| reference.controller == Some(true))?;
    // As in the garbage collector, an owner may be named in any version of its group.
    let group = controller
        .api_version
        .rsplit_once('/')
        .map_or("", |(group, _)| group);
    let is_ours = controller.kind == K::kind(&()) && group == K::group(&());
    is_ours.then(|| Key::in_scope::<K>(object.namespace().as_deref(), &controller.name))
}

/// A controller whose kind and state are not known any more; what a manager holds.
pub(crate) trait AnyController: Send {
    fn name(&self) -> &str;

    /// Subscribes to the caches, from then on filling the queue, and returns what is to be run once they are
    /// synced and this process is the leader.
    fn wire(self: Box<Self>, surroundings: &mut Surroundings<'_>) -> Wired;
}

/// What a manager has for its controllers.
pub(crate) struct Surroundings<'a> {
    pub(crate) client: Client,
    pub(crate) caches: &'a mut Caches,
    pub(crate) metrics: Metrics,
    /// Asks event publishers to finish.
    pub(crate) stop_events: Shutdown,
}

/// A controller ready to run.
pub(crate) struct Wired {
    pub(crate) name: String,
    /// Each ends when the queue is closed and its current reconcile is done.
    pub(crate) workers: Vec<BoxFuture<'static, ()>>,
    pub(crate) close_queue: Box<dyn Fn() + Send + Sync>,
    pub(crate) events: BoxFuture<'static, ()>,
}

impl<K: Object, S: Send + Sync + 'static> AnyController for Controller<K, S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn wire(self: Box<Self>, surroundings: &mut Surroundings<'_>) -> Wired {
        let Self {
            name,
            state,
            concurrency,
            timeout,
            handlers,
            watches,
        } = *self;
        let stop = surroundings.stop_events.clone();
        let (sender, events) = events::channel(
            surroundings.client.clone(),
            Reporter::from(name.as_str()),
            stop.requested(),
        );
        let worker = Arc::new(Worker {
            ctx: Ctx::with_events(surroundings.client.clone(), name.clone(), state, sender),
            queue: Arc::new(Workqueue::new(surroundings.metrics.queue(&name))),
            cache: surroundings.caches.of::<K>(),
            gone: Arc::default(),
            timeout,
            handlers,
            metrics: surroundings.metrics.controller(&name, concurrency),
        });
        let counted = Arc::downgrade(&worker.queue);
        surroundings.metrics.before_scrape(move || {
            if let Some(queue) = counted.upgrade() {
                queue.refresh_metrics();
            }
        });
        worker.watch_primary();
        let mut wiring = Wiring {
            worker: &worker,
            caches: surroundings.caches,
        };
        for watch in watches {
            watch(&mut wiring);
        }
        let queue = Arc::clone(&worker.queue);
        Wired {
            name,
            workers: (0..concurrency)
                .map(|_| Box::pin(Arc::clone(&worker).work()) as BoxFuture<'_, ()>)
                .collect(),
            close_queue: Box::new(move || queue.close()),
            events,
        }
    }
}

/// A controller's hands while it subscribes to caches.
struct Wiring<'a, K: Object, S> {
    worker: &'a Worker<K, S>,
    caches: &'a mut Caches,
}

impl<K: Object, S: Send + Sync + 'static> Wiring<'_, K, S> {
    /// Queues what `map` makes of each object that a change of kind `W` touches.
    fn watch<W: Object>(&mut self, map: impl Fn(&W, &Ctx<S>) -> Vec<Key> + Send + Sync + 'static) {
        let (queue, ctx) = (Arc::clone(&self.worker.queue), self.worker.ctx.clone());
        let enqueue = move |object: &W, priority: Priority| {
            // A panic would end the watch, for all controllers that look at this kind.
            match catch_unwind(AssertUnwindSafe(|| map(object, &ctx))) {
                Ok(keys) => keys.into_iter().for_each(|key| queue.add(key, priority)),
                Err(_) => tracing::error!(
                    controller = ctx.controller(),
                    kind = %W::kind(&()),
                    object = %Key::of(object),
                    "the mapping of a watched object panicked; nothing is reconciled for this change"
                ),
            }
        };
        self.caches
            .of::<W>()
            .subscribe(Box::new(move |change| match change {
                Change::Applied { old, new, initial } => {
                    let priority = if *initial { LOW } else { NORMAL };
                    if let Some(old) = old {
                        enqueue(old, priority);
                    }
                    enqueue(new, priority);
                }
                Change::Deleted(old) => enqueue(old, NORMAL),
            }));
    }
}

impl<K: Object, S: Send + Sync + 'static> Worker<K, S> {
    /// Queues the objects of the controller's own kind when they change, and remembers those that are gone.
    fn watch_primary(&self) {
        let (queue, gone) = (Arc::clone(&self.queue), Arc::clone(&self.gone));
        let remembers = self.handlers.on_deleted.is_some();
        self.cache.subscribe(Box::new(move |change| {
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
}
