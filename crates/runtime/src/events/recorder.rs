//! Events recorded by tasks, webhooks and other code that does not have a [`Ctx`](crate::Ctx).

use std::fmt;

use kube::Client;
use kube::runtime::events::{Event, EventType, Reporter};

use super::{EventSender, new_event, new_event_channel};
use crate::metrics::Metrics;
use crate::object::{AnyObject, event_reference};

/// Records Kubernetes events outside of a reconcile. This is the equivalent of
/// [`Ctx::normal`](crate::Ctx::normal). Returned by [`Manager::events`](crate::Manager::events).
/// Clones share the same queue.
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
    /// Creates a recorder without a manager, for calling a webhook or a task from a test.
    ///
    /// # Panics
    ///
    /// Panics if called from outside of a tokio runtime, because events are sent by a task.
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
    /// Both `reason` and `action` should be a single CamelCase word: why the action was taken, and
    /// what it was. The event is sent in the background, so this method neither blocks nor fails.
    /// The manager's role needs the verbs `create` and `patch` for `events` in the group
    /// `events.k8s.io`.
    ///
    /// As in client-go, there is a limit of 25 events per object, plus one every five minutes.
    /// Events above the limit are dropped, and counted in the metric
    /// `rbuilder_events_dropped_total`.
    pub fn normal<K: AnyObject>(&self, object: &K, reason: &str, action: &str, note: impl Into<String>) {
        self.event(object, new_event(EventType::Normal, reason, action, note.into()));
    }

    /// Records an event of type `Warning` about `object`. See [`normal`](Self::normal) for the
    /// parameters.
    pub fn warning<K: AnyObject>(&self, object: &K, reason: &str, action: &str, note: impl Into<String>) {
        self.event(object, new_event(EventType::Warning, reason, action, note.into()));
    }

    /// Records an arbitrary event about `object`. See [`normal`](Self::normal) for the limit.
    pub fn event<K: AnyObject>(&self, object: &K, event: Event) {
        self.sender.send(event, event_reference(object));
    }
}
