//! User-provided functions that a controller calls.

use std::pin::Pin;
use std::sync::Arc;

use kube::runtime::reflector::ObjectRef;

use super::Controller;
use crate::action::Action;
use crate::ctx::Ctx;
use crate::error::{BoxError, Error};
use crate::object::{Undecodable, Watchable};

pub(super) struct Handlers<K: Watchable, S> {
    pub(super) reconcile: Reconcile<Arc<K>, S>,
    /// Whether to reconcile objects that are being deleted, even if they do not have any of our
    /// finalizers.
    pub(super) reconciles_terminating: bool,
    /// Cleanups run in the order in which they were registered.
    pub(super) finalizers: Vec<Finalizer<K, S>>,
    pub(super) on_deleted: Option<Reconcile<ObjectRef<K>, S>>,
    pub(super) on_undecodable: Option<Reconcile<Arc<Undecodable>, S>>,
}

pub(super) struct Finalizer<K, S> {
    pub(super) name: String,
    pub(super) cleanup: Reconcile<Arc<K>, S>,
}

/// A boxed function that reconciles, cleans up or handles a deletion. Its argument is a `T`.
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
        // Don't call `reconcile` outside of the async block. If the block captured the future
        // instead, it would be stored twice, and futures of reconcilers can be as large as 10 kB.
        Box::pin(async move { reconcile(argument, ctx).await.map_err(Error::new) })
    })
}

impl<K: Watchable, S: Send + Sync + 'static> Controller<K, S> {
    /// Adds a finalizer. It prevents objects from being deleted until `cleanup` has succeeded.
    ///
    /// `name` should be something like `cache.example.com/finalizer`. The finalizer is added to
    /// each object before it is reconciled for the first time. When the object is being deleted,
    /// `cleanup` is called instead of the reconcile function:
    ///
    /// - If it returns [`Action::await_change`], the finalizer is removed.
    /// - If it returns [`Action::requeue`], it is called again after the delay.
    ///
    /// Cleanups must be idempotent, because they may be called again even after they have
    /// succeeded.
    ///
    /// You can call this method multiple times, and objects get all finalizers. The cleanups run in
    /// the order in which they were added, and each one has to wait for the previous finalizer to
    /// be removed. If a name is used again, the new cleanup takes the place of the old one.
    ///
    /// # Permissions
    ///
    /// The controller's role needs `patch` on the kind. Since this is not part of the scaffolded
    /// role, specify `verbs = ["list", "watch", "patch"]`.
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

    /// Makes the controller reconcile objects that are being deleted. Disabled by default, which is
    /// what the controllers of Kubernetes do.
    ///
    /// For example, you can use this to report in the status which finalizers an object is waiting
    /// for. It's also needed if your reconcile function manages a finalizer on its own, as with
    /// `kube::runtime::finalizer`.
    ///
    /// If an object has a deletion timestamp, your reconcile function must neither create nor adopt
    /// anything:
    ///
    /// - With `kubectl delete --cascade=foreground`, the garbage collector waits until all owned
    ///   objects are gone. If you keep recreating one of them, it will wait forever.
    /// - With `--cascade=orphan`, the garbage collector releases owned objects. If you adopt one
    ///   again, it will be deleted together with its owner.
    ///
    /// [`Ctx::apply_owned`](crate::Ctx::apply_owned) and other methods that take an owner check for
    /// this, but we can't check your own requests.
    ///
    /// This has no effect on controllers with a [`finalizer`](Self::finalizer), since its cleanup
    /// is called instead.
    pub fn reconciles_terminating(mut self) -> Self {
        self.handlers.reconciles_terminating = true;
        self
    }

    /// Calls `forget` after an object has been deleted. You can use this to release state that's
    /// kept in memory.
    ///
    /// Errors are retried in the same way as errors of a reconcile. Note that `forget` is not
    /// called for objects which were deleted while the operator was down, or if there is a new
    /// object of the same name already. Use a [`finalizer`](Self::finalizer) if you have to clean
    /// up external resources.
    pub fn on_deleted<F, Fut, E>(mut self, forget: F) -> Self
    where
        F: Fn(ObjectRef<K>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.handlers.on_deleted = Some(box_reconcile(forget));
        self
    }

    /// Calls `handle` for objects which cannot be decoded into `K`, e.g. because a newer version
    /// requires a field that they do not have.
    ///
    /// Undecodable objects are not reconciled, while all others are. By default, the error is
    /// logged once, recorded as a `Warning` event with reason `Undecodable`, and counted in the
    /// metric `rbuilder_undecodable_objects`. With `handle` you can do more than that, such as
    /// repairing the object, or setting a condition with a merge patch. It is called each time the
    /// object changes, and errors are retried like those of a reconcile.
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
