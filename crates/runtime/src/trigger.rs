//! Triggers reconciles of unchanged objects from outside of the cluster.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use tokio::sync::mpsc;

use crate::object::Watchable;
use crate::request::Request;

/// Senders wait while the channel is full.
const CAPACITY: usize = 1024;

/// Creates a channel through which other parts of your program can enqueue objects for a
/// controller.
///
/// Pass the [`Triggers`] to [`Controller::triggers`](crate::Controller::triggers). The [`Trigger`]
/// is cheap to clone, and goes to the source of events (e.g. an HTTP server or the state of another
/// controller). Send an [`ObjectRef`](crate::ObjectRef), or a [`Request`] to set a priority and a
/// delay.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use std::time::Duration;
/// # use rbuilder::{Action, Controller, Ctx, ObjectRef, Request, Result, trigger};
/// # async fn reconcile(object: Arc<ConfigMap>, ctx: Ctx<()>) -> Result { Ok(Action::await_change()) }
/// # async fn run() {
/// let (trigger, triggers) = trigger::channel();
/// let controller = Controller::new(reconcile, ()).triggers(triggers);
/// let settings = ObjectRef::<ConfigMap>::new("settings").within("default");
/// trigger.send(settings.clone()).await;
/// trigger.send(Request::new(settings).low_priority().after(Duration::from_secs(60))).await;
/// # }
/// ```
pub fn channel<K: Watchable>() -> (Trigger<K>, Triggers<K>) {
    let (sender, receiver) = mpsc::channel(CAPACITY);
    (Trigger { sender }, Triggers { receiver })
}

/// Enqueues objects for a controller. This is the sending end of a [`channel`].
#[derive(Debug)]
pub struct Trigger<K: Watchable> {
    sender: mpsc::Sender<Request<K>>,
}

impl<K: Watchable> Clone for Trigger<K> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
        }
    }
}

impl<K: Watchable> Trigger<K> {
    /// Requests a reconcile. Waits if there are 1024 pending requests.
    ///
    /// A delay starts when the controller receives the request. If the controller has stopped or
    /// was never started, the request is dropped.
    pub async fn send(&self, request: impl Into<Request<K>>) {
        let _ = self.sender.send(request.into()).await;
    }

    /// Requests a reconcile without waiting. Drops the request and returns `false` if there are
    /// 1024 pending requests.
    pub fn try_send(&self, request: impl Into<Request<K>>) -> bool {
        self.sender.try_send(request.into()).is_ok()
    }
}

/// The receiving end of a [`channel`].
#[derive(Debug)]
pub struct Triggers<K: Watchable> {
    receiver: mpsc::Receiver<Request<K>>,
}

impl<K: Watchable> Stream for Triggers<K> {
    type Item = Request<K>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(context)
    }
}
