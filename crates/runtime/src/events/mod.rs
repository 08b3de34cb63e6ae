//! Kubernetes events, sent in the background so that a slow API server does not delay reconciles.

mod recorder;
mod spam_filter;

use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::causes::describe_causes;
use crate::client::with_field_manager;
use crate::metrics::Counter;

pub use recorder::EventRecorder;
use spam_filter::SpamFilter;

/// Events that don't fit into the queue are dropped with a warning.
const CAPACITY: usize = 1000;

/// Clones share the same queue.
#[derive(Clone)]
pub(crate) struct EventSender {
    waiting: mpsc::Sender<(Event, ObjectReference)>,
    filter: Arc<Mutex<SpamFilter>>,
    dropped: Counter,
}

impl EventSender {
    /// Enqueues an event. The event is dropped and counted if there were too many about its object,
    /// or if the queue is full; the latter is also logged.
    pub(crate) fn send(&self, event: Event, regarding: ObjectReference) {
        let mut filter = self.filter.lock().unwrap_or_else(PoisonError::into_inner);
        let is_admitted = filter.admit(&regarding);
        drop(filter);
        if !is_admitted {
            self.dropped.inc();
            tracing::debug!(
                reason = event.reason,
                "event dropped, the object has had too many"
            );
            return;
        }
        if let Err(error) = self.waiting.try_send((event, regarding)) {
            self.dropped.inc();
            match error {
                TrySendError::Full((event, _)) => tracing::warn!(
                    reason = event.reason,
                    "event dropped, too many events are waiting to be sent"
                ),
                TrySendError::Closed((event, _)) => {
                    tracing::debug!(reason = event.reason, "event dropped, the manager has stopped")
                }
            }
        }
    }
}

pub(crate) struct WaitingEvents(mpsc::Receiver<(Event, ObjectReference)>);

/// `dropped` counts the events that don't fit into the queue.
pub(crate) fn new_event_channel(dropped: Counter) -> (EventSender, WaitingEvents) {
    let (sender, waiting) = mpsc::channel(CAPACITY);
    let sender = EventSender {
        waiting: sender,
        filter: Arc::default(),
        dropped,
    };
    (sender, WaitingEvents(waiting))
}

impl WaitingEvents {
    /// Sends events until all senders are dropped. Once `stop` resolves, only sends what is already
    /// queued.
    pub(crate) async fn publish(
        self,
        client: Client,
        reporter: Reporter,
        stop: impl Future<Output = ()> + Send + 'static,
    ) {
        let Self(mut waiting) = self;
        // kube's recorder doesn't set a field manager.
        let client = with_field_manager(client, &reporter.controller);
        let recorder = Recorder::new(client, reporter);
        let mut stop = std::pin::pin!(stop.fuse());
        loop {
            let next = tokio::select! {
                biased;
                next = waiting.recv() => next,
                () = &mut stop => {
                    // Reject new events, but send the queued ones.
                    waiting.close();
                    continue;
                }
            };
            let Some((event, regarding)) = next else { break };
            if let Err(error) = recorder.publish(&event, &regarding).await {
                let error = describe_causes(&error);
                tracing::warn!(reason = event.reason, error, "failed to record event");
            }
        }
    }
}

pub(crate) fn new_event(type_: EventType, reason: &str, action: &str, note: String) -> Event {
    Event {
        type_,
        reason: reason.to_owned(),
        action: action.to_owned(),
        note: Some(note),
        secondary: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    fn event() -> Event {
        new_event(EventType::Normal, "Synced", "Sync", String::new())
    }

    fn reference(number: usize) -> ObjectReference {
        ObjectReference {
            name: Some(number.to_string()),
            ..ObjectReference::default()
        }
    }

    #[tokio::test]
    async fn failing_object_does_not_fill_the_queue() {
        let metrics = Metrics::new();
        let (sender, _waiting) = new_event_channel(metrics.events_dropped("memo"));
        for _ in 0..2 * CAPACITY {
            sender.clone().send(event(), reference(1));
        }
        let dropped = metrics.events_dropped("memo");
        assert_eq!(dropped.get(), (2 * CAPACITY - 25) as f64);
        sender.send(event(), reference(2));
        assert_eq!(dropped.get(), (2 * CAPACITY - 25) as f64);
    }

    /// Nothing drains the queue, as when the API server hangs.
    #[tokio::test]
    async fn events_are_dropped_without_blocking_when_the_server_does_not_respond() {
        let metrics = Metrics::new();
        let (sender, waiting) = new_event_channel(metrics.events_dropped("memo"));
        let dropped = metrics.events_dropped("memo");
        for number in 0..CAPACITY {
            sender.send(event(), reference(number));
        }
        assert_eq!(dropped.get(), 0.0);
        for number in 0..3 {
            sender.send(event(), reference(number));
        }
        assert_eq!(dropped.get(), 3.0);
        drop(waiting);
        sender.send(event(), reference(3));
        assert!(
            metrics
                .text()
                .contains("rbuilder_events_dropped_total{controller=\"memo\"} 4\n")
        );
    }
}
