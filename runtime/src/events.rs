//! Kubernetes events, sent beside the reconcile: a slow or refusing API server never holds one up.

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, Recorder, Reporter};
use tokio::sync::mpsc;

/// How many events may wait; more are dropped, and said to be.
const CAPACITY: usize = 1000;

/// Hands events to a publisher. Clones share it.
#[derive(Clone)]
pub(crate) struct EventSender(mpsc::Sender<(Event, ObjectReference)>);

impl EventSender {
    /// Hands the event over, or drops it with a warning when too many are waiting.
    pub(crate) fn send(&self, event: Event, regarding: ObjectReference) {
        if let Err(refused) = self.0.try_send((event, regarding)) {
            let (mpsc::error::TrySendError::Full((event, _)) | mpsc::error::TrySendError::Closed((event, _))) =
                refused;
            tracing::warn!(
                reason = event.reason,
                "event dropped: too many are waiting to be sent"
            );
        }
    }
}

/// A sender, and the publisher that ends once `stop` has resolved and what was handed over is sent.
pub(crate) fn channel(
    client: Client,
    reporter: Reporter,
    stop: impl Future<Output = ()> + Send + 'static,
) -> (EventSender, BoxFuture<'static, ()>) {
    let (sender, mut waiting) = mpsc::channel(CAPACITY);
    let recorder = Recorder::new(client, reporter);
    let publisher = async move {
        let mut stop = std::pin::pin!(stop.fuse());
        loop {
            let next = tokio::select! {
                next = waiting.recv() => next,
                () = &mut stop => {
                    // No new ones; the loop goes on with those that are waiting.
                    waiting.close();
                    continue;
                }
            };
            let Some((event, regarding)) = next else { break };
            if let Err(error) = recorder.publish(&event, &regarding).await {
                tracing::warn!(reason = event.reason, "event not recorded: {error}");
            }
        }
    };
    (EventSender(sender), publisher.boxed())
}
