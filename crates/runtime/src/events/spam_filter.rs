//! A rate limit for the events about each object, like client-go's spam filter.
//!
//! A failing reconcile that records an event is retried forever, and records the event each time.
//! For each object, 25 events pass, and then one every five minutes.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use k8s_openapi::api::core::v1::ObjectReference;
use tokio::time::Instant;

use crate::token_bucket::TokenBucket;

/// Number of events about an object that pass at once.
const BURST: f64 = 25.0;
/// Seconds between further events.
const PERIOD: f64 = 300.0;
/// Number of objects to remember, as in client-go. An object that was forgotten gets its full burst
/// again.
const MAX_OBJECTS: usize = 4096;

/// Tracks how many events each object may still have.
///
/// Objects are forgotten in generations. A lookup moves an object to `recent`. Once `recent`
/// reaches half of the limit, it replaces `older`, and objects that have not been looked up since
/// are gone. A list ordered by time would forget exactly the oldest object, but takes more memory
/// and code.
#[derive(Debug, Default)]
pub(super) struct SpamFilter {
    recent: HashMap<u64, TokenBucket>,
    older: HashMap<u64, TokenBucket>,
    hasher: RandomState,
}

impl SpamFilter {
    /// Returns `true` if another event about this object may pass, and counts it.
    pub(super) fn admit(&mut self, regarding: &ObjectReference) -> bool {
        let now = Instant::now();
        let ObjectReference {
            api_version,
            kind,
            namespace,
            name,
            uid,
            ..
        } = regarding;
        let key = self.hasher.hash_one((api_version, kind, namespace, name, uid));
        let known = self.recent.remove(&key).or_else(|| self.older.remove(&key));
        let mut bucket = known.unwrap_or(TokenBucket::full(BURST, now));
        bucket.fill(1.0 / PERIOD, BURST, now);
        let is_admitted = bucket.tokens >= 1.0;
        if is_admitted {
            bucket.tokens -= 1.0;
        }
        if self.recent.len() >= MAX_OBJECTS / 2 {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key, bucket);
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    fn reference(name: usize) -> ObjectReference {
        ObjectReference {
            name: Some(name.to_string()),
            ..ObjectReference::default()
        }
    }

    fn admitted(filter: &mut SpamFilter, object: usize, sent: usize) -> usize {
        (0..sent).filter(|_| filter.admit(&reference(object))).count()
    }

    #[tokio::test(start_paused = true)]
    async fn object_gets_25_events_and_then_one_every_five_minutes() {
        let mut filter = SpamFilter::default();
        assert_eq!(admitted(&mut filter, 1, 1000), 25);
        assert_eq!(admitted(&mut filter, 2, 1000), 25);
        advance(Duration::from_secs(299)).await;
        assert_eq!(admitted(&mut filter, 1, 1000), 0);
        advance(Duration::from_secs(2)).await;
        assert_eq!(admitted(&mut filter, 1, 1000), 1);
        advance(Duration::from_secs(24 * 60 * 60)).await;
        assert_eq!(admitted(&mut filter, 1, 1000), 25);
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded_and_active_objects_are_kept() {
        let mut filter = SpamFilter::default();
        assert_eq!(admitted(&mut filter, 0, 25), 25);
        for object in 1..10 * MAX_OBJECTS {
            assert!(filter.admit(&reference(object)));
            if object % 100 == 0 {
                assert!(!filter.admit(&reference(0)), "{object}");
            }
            assert!(filter.recent.len() + filter.older.len() <= MAX_OBJECTS);
        }
    }
}
