//! Kubernetes events, sent beside the reconcile: a slow or refusing API server never holds one up.

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, Recorder, Reporter};
use tokio::sync::mpsc;

use crate::metrics::Counter;

/// How many events may wait; more are dropped, and said to be.
const CAPACITY: usize = 1000;

/// Hands events to a publisher. Clones share it.
#[derive(Clone)]
pub(crate) struct EventSender {
    waiting: mpsc::Sender<(Event, ObjectReference)>,
    dropped: Counter,
}

impl EventSender {
    /// Hands the event over, or counts and drops it with a warning when too many are waiting.
    pub(crate) fn send(&self, event: Event, regarding: ObjectReference) {
        if let Err(refused) = self.waiting.try_send((event, regarding)) {
            self.dropped.inc();
            let (mpsc::error::TrySendError::Full((event, _)) | mpsc::error::TrySendError::Closed((event, _))) =
                refused;
            tracing::warn!(
                reason = event.reason,
                "event dropped, too many events are waiting to be sent"
            );
        }
    }
}

/// A sender, and the publisher that ends once `stop` has resolved and what was handed over is sent.
pub(crate) fn channel(
    client: Client,
    reporter: Reporter,
    dropped: Counter,
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
                tracing::warn!(reason = event.reason, %error, "failed to record event");
            }
        }
    };
    let sender = EventSender {
        waiting: sender,
        dropped,
    };
    (sender, publisher.boxed())
}

#[cfg(test)]
mod tests {
    use kube::runtime::events::EventType;

    use super::*;
    use crate::metrics::Metrics;

    fn event() -> Event {
        Event {
            type_: EventType::Normal,
            reason: "Synced".to_owned(),
            action: "Sync".to_owned(),
            note: None,
            secondary: None,
        }
    }

    /// The publisher is never polled here, as if the API server did not answer.
    #[tokio::test]
    async fn a_server_that_does_not_answer_costs_events_and_no_time() {
        let metrics = Metrics::new();
        let nowhere = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
        let client = Client::try_from(nowhere).unwrap();
        let dropped = metrics.events_dropped("memo");
        let (sender, publisher) = channel(
            client,
            Reporter::from("memo"),
            dropped.clone(),
            std::future::pending(),
        );
        for _ in 0..CAPACITY {
            sender.send(event(), ObjectReference::default());
        }
        assert_eq!(dropped.get(), 0.0);
        for _ in 0..3 {
            sender.send(event(), ObjectReference::default());
        }
        assert_eq!(dropped.get(), 3.0);
        drop(publisher);
        sender.send(event(), ObjectReference::default());
        assert!(
            metrics
                .text()
                .contains("rbuilder_events_dropped_total{controller=\"memo\"} 4\n")
        );
    }
}
