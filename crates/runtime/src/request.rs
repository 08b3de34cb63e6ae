//! Requests to reconcile an object, with an optional priority and delay.

use std::time::Duration;

use kube::runtime::reflector::ObjectRef;

use crate::object::{Key, Kind, Watchable};
use crate::queue::{LOW, Priority, Workqueue};

/// A request to reconcile an object, for use with a [`Trigger`](crate::trigger::Trigger) or a
/// [mapping function](crate::Watch::mapped_changes).
///
/// A plain [`ObjectRef`] can be used instead. It's converted to a request without a delay, which
/// has the priority of its source.
///
/// ```
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use rbuilder::{ObjectRef, Request};
/// let settings = ObjectRef::<ConfigMap>::new("settings").within("default");
/// let later = Request::new(settings.clone()).low_priority().after(Duration::from_secs(30));
/// let now = Request::from(settings);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<K: Watchable> {
    object: ObjectRef<K>,
    priority: Option<Priority>,
    delay: Duration,
}

impl<K: Watchable> Request<K> {
    /// Creates a request without a delay.
    pub fn new(object: ObjectRef<K>) -> Self {
        Self {
            object,
            priority: None,
            delay: Duration::ZERO,
        }
    }

    /// Sets the priority. Defaults to 0 for changes and triggers, and to -100 for the initial list
    /// and resyncs.
    ///
    /// Objects with a higher priority are reconciled first. To prevent starvation, each second of
    /// waiting counts as one point of priority. Retries keep the priority of their request. If an
    /// object is requested multiple times before it's reconciled, the highest priority counts. Each
    /// of the first 25 priorities has its own series of the metric `workqueue_depth`.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets the priority to -100, the same as for resyncs. Use this for work that is less important
    /// than changes.
    #[must_use]
    pub fn low_priority(self) -> Self {
        self.priority(LOW)
    }

    /// Delays the request. An earlier request for the same object takes precedence.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Returns a reference to the object.
    pub fn object(&self) -> &ObjectRef<K> {
        &self.object
    }

    pub(crate) fn to_key_request(&self, kind: &Kind<K>) -> KeyRequest {
        KeyRequest {
            key: kind.key_of(&self.object),
            priority: self.priority,
            delay: self.delay,
        }
    }
}

impl<K: Watchable> From<ObjectRef<K>> for Request<K> {
    fn from(object: ObjectRef<K>) -> Self {
        Self::new(object)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRequest {
    key: Key,
    priority: Option<Priority>,
    delay: Duration,
}

impl KeyRequest {
    pub(crate) fn enqueue(self, queue: &Workqueue<Key>, default_priority: Priority) {
        queue.add_after(self.key, self.delay, self.priority.unwrap_or(default_priority));
    }

    /// Merges requests for the same key, using the earliest time and the highest priority.
    pub(crate) fn deduplicate(requests: &mut Vec<Self>, default_priority: Priority) {
        if requests.len() < 2 {
            return;
        }
        requests.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        requests.dedup_by(|removed, kept| {
            if removed.key != kept.key {
                return false;
            }
            let [a, b] = [removed.priority, kept.priority].map(|given| given.unwrap_or(default_priority));
            kept.priority = Some(a.max(b));
            kept.delay = kept.delay.min(removed.delay);
            true
        });
    }
}

impl From<Key> for KeyRequest {
    fn from(key: Key) -> Self {
        Self {
            key,
            priority: None,
            delay: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::queue::NORMAL;

    fn request(name: &str) -> Request<ConfigMap> {
        Request::new(ObjectRef::new(name).within("a"))
    }

    fn resolve(requests: &[Request<ConfigMap>], default_priority: Priority) -> Vec<KeyRequest> {
        let kind = Kind::of_type();
        let mut resolved = requests
            .iter()
            .map(|request| request.to_key_request(&kind))
            .collect();
        KeyRequest::deduplicate(&mut resolved, default_priority);
        resolved
    }

    #[test]
    fn requests_for_one_object_merge_to_the_earliest_time_and_highest_priority() {
        let second = Duration::from_secs(1);
        let found = resolve(
            &[
                request("b").after(second).priority(5),
                request("a"),
                request("b").after(2 * second).low_priority(),
            ],
            NORMAL,
        );
        let kind = Kind::of_type();
        let merged = request("b").after(second).priority(5);
        assert_eq!(
            found,
            [request("a"), merged].map(|request| request.to_key_request(&kind))
        );
    }

    #[test]
    fn request_without_priority_gets_the_priority_of_its_source() {
        let found = resolve(&[request("a"), request("a").priority(-200)], LOW);
        assert_eq!(
            found,
            [request("a").low_priority().to_key_request(&Kind::of_type())]
        );
    }
}
