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
    /// Whether to reconcile terminating objects without any of our finalizers.
    pub(super) reconciles_terminating: bool,
    /// In order of registration, which is the order in which cleanups run.
    pub(super) finalizers: Vec<Finalizer<K, S>>,
    pub(super) on_deleted: Option<Reconcile<ObjectRef<K>, S>>,
    pub(super) on_undecodable: Option<Reconcile<Arc<Undecodable>, S>>,
}

pub(super) struct Finalizer<K, S> {
    pub(super) name: String,
    pub(super) cleanup: Reconcile<Arc<K>, S>,
}

/// A boxed function that reconciles, cleans up or handles a deletion, called with a `T`.
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
        // Don't call `reconcile` outside of the async block: the block would then capture the
        // future and store it twice, and futures of reconcilers can be as large as 10 kB.
        Box::pin(async move { reconcile(argument, ctx).await.map_err(Error::new) })
    })
}

impl<K: Watchable, S: Send + Sync + 'static> Controller<K, S> {
    /// Adds a finalizer. It prevents objects from being deleted until `cleanup` has succeeded.
    ///
    /// `name` should be something like `cache.example.com/finalizer`. The finalizer is added to
    /// each object before its first reconcile. Once the object is being deleted, `cleanup` is
    /// called instead of the reconcile function:
    ///
    /// - If it returns [`Action::await_change`], the finalizer is removed.
    /// - If it returns [`Action::requeue`], it is called again after the delay.
    ///
    /// Cleanups must be idempotent, because they may be called again even after they have
    /// succeeded.
    ///
    /// This method can be called multiple times, and each object gets all of the finalizers. The
    /// cleanups run sequentially in the order in which they were added; each waits until the
    /// previous finalizer was removed. If a name is used again, the new cleanup replaces the old
    /// one.
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

    /// Makes the controller reconcile objects that are being deleted. Disabled by default, as in
    /// the controllers of Kubernetes.
    ///
    /// For example, you can use this to report in the status which finalizers an object is waiting
    /// for. It's also needed if your reconcile function manages a finalizer on its own, e.g. with
    /// `kube::runtime::finalizer`.
    ///
    /// If an object has a deletion timestamp, your reconcile function must neither create nor adopt
    /// anything:
    ///
    /// - With `kubectl delete --cascade=foreground`, the garbage collector waits until all owned
    ///   objects are gone. If you keep recreating one of them, it will wait forever.
    /// - With `--cascade=orphan`, the garbage collector orphans owned objects. If you adopt one
    ///   again, it will be deleted together with its owner.
    ///
    /// [`Ctx::apply_owned`](crate::Ctx::apply_owned) and other methods that take an owner check for
    /// this, but requests that you send yourself aren't checked.
    ///
    /// This has no effect on controllers with a [`finalizer`](Self::finalizer), since its cleanup
    /// is called instead.
    pub fn reconciles_terminating(mut self) -> Self {
        self.handlers.reconciles_terminating = true;
        self
    }

    /// Calls `forget` after an object was deleted, e.g. to release state kept in memory.
    ///
    /// Errors are retried like errors of a reconcile. `forget` is not called for objects that were
    /// deleted while the operator was down, or if an object with the same name already exists
    /// again. Use a [`finalizer`](Self::finalizer) to clean up external resources.
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
