//! Rate limit for events, like the spam filter in client-go.
//!
//! If a reconcile records an event and then fails, it is retried forever, and records the event
//! each time. The filter admits 25 events per object, plus one every five minutes.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use k8s_openapi::api::core::v1::ObjectReference;
use tokio::time::Instant;

use crate::token_bucket::TokenBucket;

/// Maximum size of a burst of events.
const BURST: f64 = 25.0;
/// In seconds. After a burst, one event is admitted per period.
const PERIOD: f64 = 300.0;
/// Maximum number of tracked objects, same as in client-go. An object that was dropped starts over
/// with a full burst.
const MAX_OBJECTS: usize = 4096;

/// Counts the events of each object.
///
/// Objects are kept in two generations to bound the memory. Looking up an object moves it to
/// `recent`. Once that's half full, it replaces `older`, which drops all objects not used since the
/// last time. An LRU list would be more accurate, but take more memory and code.
#[derive(Debug, Default)]
pub(super) struct SpamFilter {
    recent: HashMap<u64, TokenBucket>,
    older: HashMap<u64, TokenBucket>,
    hasher: RandomState,
}

impl SpamFilter {
    /// Counts an event. Returns `false` if it must be dropped.
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
