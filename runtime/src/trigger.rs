//! Reconcile requests from outside the cluster, for objects that have not changed.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use kube::runtime::reflector::ObjectRef;
use tokio::sync::mpsc;

use crate::object::Watchable;

/// Capacity of a channel; senders wait while it is full.
const CAPACITY: usize = 1024;

/// Creates a channel through which other parts of a program enqueue objects for a controller.
///
/// Pass the [`Triggers`] to [`Controller::triggers`](crate::Controller::triggers), and the [`Trigger`] or clones of it to
/// the source of events: an HTTP server, a poller, another controller's state.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use rbuilder::{Action, Controller, Ctx, ObjectRef, Result, trigger};
/// # async fn reconcile(object: Arc<ConfigMap>, ctx: Ctx<()>) -> Result { Ok(Action::await_change()) }
/// # async fn run() {
/// let (trigger, triggers) = trigger::channel();
/// let controller = Controller::new(reconcile, ()).triggers(triggers);
/// trigger.send(ObjectRef::<ConfigMap>::new("settings").within("default")).await;
/// # }
/// ```
pub fn channel<K: Watchable>() -> (Trigger<K>, Triggers<K>) {
    let (sender, receiver) = mpsc::channel(CAPACITY);
    (Trigger { sender }, Triggers { receiver })
}

/// Enqueues objects for a controller.
#[derive(Debug)]
pub struct Trigger<K: Watchable> {
    sender: mpsc::Sender<ObjectRef<K>>,
}

impl<K: Watchable> Clone for Trigger<K> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
        }
    }
}

impl<K: Watchable> Trigger<K> {
    /// Requests a reconcile of `object`; waits while 1024 requests are pending.
    ///
    /// When the controller has stopped, or never started, the request is dropped.
    pub async fn send(&self, object: ObjectRef<K>) {
        let _ = self.sender.send(object).await;
    }

    /// Requests a reconcile of `object` unless 1024 requests are pending. Returns `false` when the request was dropped.
    pub fn try_send(&self, object: ObjectRef<K>) -> bool {
        self.sender.try_send(object).is_ok()
    }
}

/// The receiving end of a [`channel`].
#[derive(Debug)]
pub struct Triggers<K: Watchable> {
    receiver: mpsc::Receiver<ObjectRef<K>>,
}

impl<K: Watchable> Stream for Triggers<K> {
    type Item = ObjectRef<K>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(context)
    }
}
