//! Events from tasks, webhooks and other code outside of a reconcile.

use std::fmt;

use kube::Client;
use kube::runtime::events::{Event, EventType, Reporter};

use super::{EventSender, new_event, new_event_channel};
use crate::metrics::Metrics;
use crate::object::{AnyObject, event_reference};

/// Records Kubernetes events outside of a reconcile, like [`Ctx::normal`](crate::Ctx::normal) does
/// inside of one; see [`Manager::events`](crate::Manager::events). Clones share the queue.
#[derive(Clone)]
pub struct EventRecorder {
    name: String,
    sender: EventSender,
}

impl fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecorder")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl EventRecorder {
    /// Creates a recorder without a manager, for calling a webhook or the function of a task from a
    /// test.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime, which is needed to send the events.
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        let name = name.into();
        let (sender, waiting) = new_event_channel(Metrics::new().events_dropped(&name));
        let reporter = Reporter::from(name.as_str());
        tokio::spawn(waiting.publish(client, reporter, std::future::pending()));
        Self::of_sender(name, sender)
    }

    pub(crate) fn of_sender(name: String, sender: EventSender) -> Self {
        Self { name, sender }
    }

    /// Records an event of type `Normal` about `object`.
    ///
    /// `reason` and `action` are single CamelCase words: the reason for the action, and the action
    /// taken. The event is sent in the background, so this neither waits nor fails. The manager's
    /// role needs `create` and `patch` on `events` in the group `events.k8s.io`.
    ///
    /// Each object may have 25 events, and then one every five minutes, as in client-go. Further
    /// events are dropped and counted in `rbuilder_events_dropped_total`.
    pub fn normal<K: AnyObject>(&self, object: &K, reason: &str, action: &str, note: impl Into<String>) {
        self.event(object, new_event(EventType::Normal, reason, action, note.into()));
    }

    /// Records an event of type `Warning` about `object`; see [`normal`](Self::normal).
    pub fn warning<K: AnyObject>(&self, object: &K, reason: &str, action: &str, note: impl Into<String>) {
        self.event(object, new_event(EventType::Warning, reason, action, note.into()));
    }

    /// Records any event about `object`; see [`normal`](Self::normal).
    pub fn event<K: AnyObject>(&self, object: &K, event: Event) {
        self.sender.send(event, event_reference(object));
    }
}
