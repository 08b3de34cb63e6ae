//! Rate limiters, which determine the delay before a failed object is reconciled again.
//!
//! By default, a controller uses [exponential backoff](ExponentialBackoff) per object. Use
//! [`Controller::rate_limiter`](crate::Controller::rate_limiter) to set another [`RateLimiter`].
//! The trait and its implementations are modeled after client-go's `workqueue` package:
//!
//! | client-go | here |
//! |---|---|
//! | `TypedRateLimiter` | [`RateLimiter`] |
//! | `TypedItemExponentialFailureRateLimiter` | [`ExponentialBackoff`] |
//! | `TypedBucketRateLimiter` | [`TokenBucket`] |
//! | `TypedMaxOfRateLimiter` | [`MaxOf`] |
//!
//! # Example
//!
//! This is client-go's default limiter. It combines exponential backoff per object with an overall
//! limit of ten retries per second, after a burst of a hundred.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use std::time::Duration;
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # use rbuilder::{Action, Controller, Ctx, Result};
//! # async fn reconcile(object: Arc<ConfigMap>, ctx: Ctx<()>) -> Result { Ok(Action::await_change()) }
//! use rbuilder::rate_limiter::{ExponentialBackoff, MaxOf, TokenBucket};
//!
//! let limiter = MaxOf::new(
//!     ExponentialBackoff::new(Duration::from_millis(5), Duration::from_secs(1000)),
//!     TokenBucket::new(10.0, 100),
//! );
//! let controller = Controller::new(reconcile, ()).rate_limiter(limiter);
//! ```

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::runtime::reflector::ObjectRef;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::hash::HashMap;
use crate::object::{Key, Kind, Watchable};
use crate::token_bucket;

/// Maximum delay of a [`TokenBucket`], same as the longest backoff in controller-runtime.
const LONGEST_QUEUE: Duration = Duration::from_secs(1000);

/// Determines the delay before a failed object is reconciled again.
///
/// All workers of a controller call these methods concurrently (without holding any locks), so they
/// should not block. If a method panics, the panic is logged and the default backoff is used.
pub trait RateLimiter<T>: Send + Sync + 'static {
    /// Counts a failure of `key`. Returns the delay until the next attempt.
    ///
    /// Controllers clamp this to the range from 1 ms to one day.
    fn when(&self, key: &T) -> Duration;

    /// Forgets all failures of `key`. Called when `key` was reconciled successfully, or failed with
    /// a [terminal](crate::Error::terminal) error.
    fn forget(&self, key: &T);

    /// Returns the number of failures of `key` since it was last forgotten, as shown in
    /// `/debug/queues`.
    fn num_requeues(&self, key: &T) -> u32;
}

impl<T, L: RateLimiter<T> + ?Sized> RateLimiter<T> for Box<L> {
    fn when(&self, key: &T) -> Duration {
        (**self).when(key)
    }

    fn forget(&self, key: &T) {
        (**self).forget(key);
    }

    fn num_requeues(&self, key: &T) -> u32 {
        (**self).num_requeues(key)
    }
}

/// A delay per key that doubles with each failure.
#[derive(Debug)]
pub struct ExponentialBackoff<T> {
    backoff: Backoff,
    failures: Mutex<HashMap<T, u32>>,
}

impl<T: Hash + Eq> ExponentialBackoff<T> {
    /// Creates a backoff that starts with `min` and doubles with each failure, up to `max`.
    ///
    /// Any duration is accepted. Delays are at least 1 ms, and never exceed `max` even if `min`
    /// does.
    pub fn new(min: Duration, max: Duration) -> Self {
        Self {
            backoff: Backoff { min, max },
            failures: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<T, u32>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Hash + Eq> Default for ExponentialBackoff<T> {
    /// Same as the [default of controllers](crate::Controller::backoff).
    fn default() -> Self {
        let Backoff { min, max } = Backoff::default();
        Self::new(min, max)
    }
}

impl<T: Clone + Hash + Eq + Send + 'static> RateLimiter<T> for ExponentialBackoff<T> {
    fn when(&self, key: &T) -> Duration {
        let mut failures = self.lock();
        let Some(count) = failures.get_mut(key) else {
            failures.insert(key.clone(), 1);
            return self.backoff.delay_after(0);
        };
        let delay = self.backoff.delay_after(*count);
        *count = count.saturating_add(1);
        delay
    }

    fn forget(&self, key: &T) {
        self.lock().remove(key);
    }

    fn num_requeues(&self, key: &T) -> u32 {
        self.lock().get(key).copied().unwrap_or_default()
    }
}

/// Limits the overall rate of retries with a token bucket, independently of the key.
///
/// This doesn't back off: if only one object fails, it's retried at the full rate. You probably
/// want to combine it with [`ExponentialBackoff`], using [`MaxOf`].
#[derive(Debug)]
pub struct TokenBucket {
    rate: f64,
    burst: f64,
    tokens: Mutex<token_bucket::TokenBucket>,
}

impl TokenBucket {
    /// Creates a limit of `rate` retries per second, with bursts of up to `burst` (at least one).
    ///
    /// There is no limit if the rate is not a positive number. Delays never exceed 1000 s, so if
    /// there are too many failures or the rate is very low, retries are faster than `rate`.
    pub fn new(rate: f64, burst: u32) -> Self {
        let burst = f64::from(burst.max(1));
        Self {
            rate,
            burst,
            tokens: Mutex::new(token_bucket::TokenBucket::full(burst, Instant::now())),
        }
    }
}

impl<T> RateLimiter<T> for TokenBucket {
    fn when(&self, _: &T) -> Duration {
        if self.rate.is_nan() || self.rate <= 0.0 {
            return Duration::ZERO;
        }
        let mut bucket = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.fill(self.rate, self.burst, Instant::now());
        let most_in_advance = self.rate * LONGEST_QUEUE.as_secs_f64();
        // Beyond the maximum delay, further retries take no tokens.
        bucket.tokens = (bucket.tokens - 1.0).max(-most_in_advance);
        // NaN if the rate is infinite, and zero if there's a token left.
        let wait = Duration::try_from_secs_f64(-bucket.tokens / self.rate).unwrap_or_default();
        wait.min(LONGEST_QUEUE)
    }

    /// No-op, since the bucket is not aware of keys.
    fn forget(&self, _: &T) {}

    /// Returns zero, since the bucket isn't aware of keys.
    fn num_requeues(&self, _: &T) -> u32 {
        0
    }
}

/// Combines two rate limiters by using the longer delay. Both of them count each failure. Can be
/// nested to combine more than two.
#[derive(Debug)]
pub struct MaxOf<A, B> {
    first: A,
    second: B,
}

impl<A, B> MaxOf<A, B> {
    /// Combines two rate limiters.
    pub fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<T, A: RateLimiter<T>, B: RateLimiter<T>> RateLimiter<T> for MaxOf<A, B> {
    fn when(&self, key: &T) -> Duration {
        self.first.when(key).max(self.second.when(key))
    }

    fn forget(&self, key: &T) {
        self.first.forget(key);
        self.second.forget(key);
    }

    fn num_requeues(&self, key: &T) -> u32 {
        self.first.num_requeues(key).max(self.second.num_requeues(key))
    }
}

/// Adapts a rate limiter for object references to a queue of keys.
pub(crate) struct ByReference<K: Watchable> {
    pub(crate) kind: Kind<K>,
    pub(crate) limiter: Box<dyn RateLimiter<ObjectRef<K>>>,
}

impl<K: Watchable> RateLimiter<Key> for ByReference<K> {
    fn when(&self, key: &Key) -> Duration {
        self.limiter.when(&self.kind.reference(key))
    }

    fn forget(&self, key: &Key) {
        self.limiter.forget(&self.kind.reference(key));
    }

    fn num_requeues(&self, key: &Key) -> u32 {
        self.limiter.num_requeues(&self.kind.reference(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn exponential_back_off_counts_each_key() {
        let limiter = ExponentialBackoff::new(5 * MS, 12 * MS);
        let delays = ["a", "a", "a", "b"].map(|key| limiter.when(&key));
        assert_eq!(delays, [5 * MS, 10 * MS, 12 * MS, 5 * MS]);
        assert_eq!(["a", "b", "c"].map(|key| limiter.num_requeues(&key)), [3, 1, 0]);
        limiter.forget(&"a");
        assert_eq!(limiter.num_requeues(&"a"), 0);
        assert_eq!(limiter.when(&"a"), 5 * MS);
        let default = ExponentialBackoff::default();
        assert_eq!(
            (0..30).map(|_| default.when(&1)).max(),
            Some(Duration::from_secs(1000))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn token_bucket_spaces_out_retries_beyond_the_burst() {
        let limiter = TokenBucket::new(10.0, 2);
        let delays = [(); 4].map(|()| limiter.when(&"any"));
        assert_eq!(delays, [0, 0, 100, 200].map(|ms| ms * MS));
        tokio::time::advance(Duration::from_secs(60)).await;
        let delays = [(); 3].map(|()| limiter.when(&"other"));
        assert_eq!(delays, [0, 0, 100].map(|ms| ms * MS));
        assert_eq!(limiter.num_requeues(&"any"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn retry_never_waits_forever() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX] {
            let limiter = TokenBucket::new(rate, 0);
            let longest = (0..100).map(|_| limiter.when(&"any")).max();
            assert!(longest < Some(MS), "{rate}: {longest:?}");
        }
        for rate in [f64::MIN_POSITIVE, 5e-324, 1e-9, 0.01] {
            let limiter = TokenBucket::new(rate, u32::MAX);
            *limiter.tokens.lock().unwrap() = token_bucket::TokenBucket::full(0.0, Instant::now());
            let longest = (0..1000).map(|_| limiter.when(&"any")).max();
            assert_eq!(longest, Some(LONGEST_QUEUE), "{rate}");
            tokio::time::advance(LONGEST_QUEUE).await;
            assert!(limiter.when(&"any") <= LONGEST_QUEUE);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn max_of_returns_the_longer_delay() {
        let limiter = MaxOf::new(
            ExponentialBackoff::new(50 * MS, 1000 * MS),
            TokenBucket::new(10.0, 1),
        );
        assert_eq!(limiter.when(&"a"), 50 * MS);
        assert_eq!(limiter.when(&"a"), 100 * MS);
        assert_eq!(limiter.when(&"b"), 200 * MS, "of the bucket");
        assert_eq!(limiter.num_requeues(&"a"), 2);
        limiter.forget(&"a");
        assert_eq!(limiter.num_requeues(&"a"), 0);
        let nested: Box<dyn RateLimiter<&str>> = Box::new(MaxOf::new(limiter, ExponentialBackoff::default()));
        assert_eq!(nested.when(&"a"), 300 * MS);
    }
}
