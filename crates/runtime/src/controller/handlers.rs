//! The operator's functions that a controller calls.

use std::pin::Pin;
use std::sync::Arc;

use kube::runtime::reflector::ObjectRef;

use super::Controller;
use crate::action::Action;
use crate::ctx::Ctx;
use crate::error::{BoxError, Error};
use crate::object::{Undecodable, Watchable};

/// The functions supplied by the operator.
pub(super) struct Handlers<K: Watchable, S> {
    pub(super) reconcile: Reconcile<Arc<K>, S>,
    /// Whether objects that are being deleted are reconciled even without a finalizer.
    pub(super) reconciles_terminating: bool,
    /// In the order in which they were added.
    pub(super) finalizers: Vec<Finalizer<K, S>>,
    pub(super) on_deleted: Option<Reconcile<ObjectRef<K>, S>>,
    pub(super) on_undecodable: Option<Reconcile<Arc<Undecodable>, S>>,
}

/// A finalizer and its cleanup.
pub(super) struct Finalizer<K, S> {
    pub(super) name: String,
    pub(super) cleanup: Reconcile<Arc<K>, S>,
}

/// A boxed reconcile, cleanup or deletion function with an argument of type `T`.
pub(super) type Reconcile<T, S> =
    Box<dyn Fn(T, Ctx<S>) -> Pin<Box<dyn Future<Output = Result<Action, Error>> + Send>> + Send + Sync>;

pub(super) fn box_reconcile<T, S, F, Fut, E>(reconcile: F) -> Reconcile<T, S>
where
    T: Send + 'static,
    S: Send + Sync + 'static,
    F: Fn(T, Ctx<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, E>> + Send + 'static,
    E: Into<BoxError>,
{
    let reconcile = Arc::new(reconcile);
    Box::new(move |argument, ctx| {
        let reconcile = Arc::clone(&reconcile);
        // Call `reconcile` inside the async block: a block that captures the future stores it
        // twice, and the future may take ten kilobytes.
        Box::pin(async move { reconcile(argument, ctx).await.map_err(Error::new) })
    })
}

impl<K: Watchable, S: Send + Sync + 'static> Controller<K, S> {
    /// Adds a finalizer that prevents objects from being deleted until `cleanup` has succeeded.
    ///
    /// The finalizer `name` (such as `cache.example.com/finalizer`) is added to each object before its first reconcile.
    /// Once the object is being deleted, `cleanup` is called instead of the reconcile function. When it returns
    /// [`Action::await_change`], the finalizer is removed; when it returns [`Action::requeue`], it is called again after
    /// the delay. It must be idempotent, because it may be called again after it succeeded.
    ///
    /// The controller's role needs `patch` on the kind, which scaffolds do not grant: `verbs = ["list", "watch", "patch"]`.
    ///
    /// When called repeatedly, the object gets all of these finalizers. Their cleanups run in the
    /// order in which they were added, each once the previous finalizer has been removed. Adding a
    /// name again replaces its cleanup and keeps its place.
    pub fn finalizer<F, Fut, E>(mut self, name: impl Into<String>, cleanup: F) -> Self
    where
        F: Fn(Arc<K>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let finalizer = Finalizer {
            name: name.into(),
            cleanup: box_reconcile(cleanup),
        };
        let finalizers = &mut self.handlers.finalizers;
        match finalizers.iter_mut().find(|added| added.name == finalizer.name) {
            Some(added) => *added = finalizer,
            None => finalizers.push(finalizer),
        }
        self
    }

    /// Also reconciles objects that are being deleted, for example to report in their status what
    /// other finalizers wait for, or for a finalizer that the reconcile itself adds and removes, as
    /// with `kube::runtime::finalizer`. Off by default, like in Kubernetes' own controllers, which
    /// only reconcile objects without a deletion timestamp.
    ///
    /// For an object with a deletion timestamp, the reconcile must neither create nor adopt
    /// anything. With `kubectl delete --cascade=foreground`, the garbage collector waits until all
    /// owned objects are gone, so it would wait forever for one that is created again each time.
    /// With `--cascade=orphan`, it releases them, and one that is adopted again is deleted with its
    /// owner. [`Ctx::apply_owned`](crate::Ctx::apply_owned) and the other methods with an owner
    /// refuse to do this, but your own requests are not checked.
    ///
    /// Has no effect on a controller with a [`finalizer`](Self::finalizer), whose cleanup is called
    /// instead.
    pub fn reconciles_terminating(mut self) -> Self {
        self.handlers.reconciles_terminating = true;
        self
    }

    /// Calls `forget` after an object was deleted, to release in-memory state about it.
    ///
    /// A failure is retried like a failed reconcile. `forget` is not called if an object with the
    /// same name exists again, nor for objects deleted while the operator was not running. To clean
    /// up external resources, use a [`finalizer`](Self::finalizer).
    pub fn on_deleted<F, Fut, E>(mut self, forget: F) -> Self
    where
        F: Fn(ObjectRef<K>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.handlers.on_deleted = Some(box_reconcile(forget));
        self
    }

    /// Calls `handle` for an object of the controller's kind that cannot be decoded into `K`, such as one without a field
    /// that a newer release requires.
    ///
    /// Such an object is never reconciled, but all others are. It is logged once, reported to its
    /// owner with a `Warning` event `Undecodable`, and counted in `rbuilder_undecodable_objects`.
    /// `handle` can do more: set a condition with a merge patch, or repair the object. It is called
    /// whenever the object changes, and is retried like a reconcile.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use rbuilder::{Action, Controller, Ctx, Result, Undecodable};
    /// # async fn reconcile(object: Arc<ConfigMap>, ctx: Ctx<()>) -> Result { Ok(Action::await_change()) }
    /// async fn complain(object: Arc<Undecodable>, _ctx: Ctx<()>) -> Result {
    ///     println!("{:?}: {object}", object.metadata().name);
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let controller = Controller::new(reconcile, ()).on_undecodable(complain);
    /// ```
    pub fn on_undecodable<F, Fut, E>(mut self, handle: F) -> Self
    where
        F: Fn(Arc<Undecodable>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.handlers.on_undecodable = Some(box_reconcile(handle));
        self
    }
}
