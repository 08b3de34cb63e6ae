//! Optional client-side rate limiting, like `QPS` and `Burst` in client-go.
//!
//! There is no limit by default (as in controller-runtime), because the API server already limits
//! its clients with API Priority and Fairness.
//!
//! Every attempt of a request takes a token, except for watches, which client-go doesn't count
//! either. There are only a few of them, they last for minutes, and a cache should not have to wait
//! for the very reconciles that depend on it. Leader election isn't limited because it uses a
//! separate client.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{BoxFuture, Either};
use http::{Request, Response};
use tokio::time::{Instant, sleep};
use tower::{BoxError, Service};

use crate::metrics::is_watch;
use crate::token_bucket::TokenBucket;

const LOGGED_WAIT: Duration = Duration::from_secs(1);
const LOG_PERIOD: Duration = Duration::from_secs(60);

#[derive(Clone, Default)]
pub(crate) struct FlowControl(Arc<Mutex<Option<Limit>>>);

/// If there is no token left, a request reserves the next one and waits for the bucket to refill.
struct Limit {
    rate: f64,
    burst: f64,
    /// Negative while requests are waiting.
    bucket: TokenBucket,
    logged: Option<Instant>,
}

impl Limit {
    /// Takes a token and returns the delay until it becomes available.
    fn take(&mut self, now: Instant) -> Duration {
        let Self {
            rate, burst, bucket, ..
        } = self;
        bucket.fill(*rate, *burst, now);
        bucket.tokens -= 1.0;
        Duration::try_from_secs_f64((-bucket.tokens).max(0.0) / *rate).unwrap_or(Duration::MAX)
    }

    /// Returns `true` if the wait is worth logging, and none was logged recently.
    fn should_log(&mut self, wait: Duration, now: Instant) -> bool {
        let is_due = self.logged.is_none_or(|logged| now >= logged + LOG_PERIOD);
        let should_log = wait >= LOGGED_WAIT && is_due;
        if should_log {
            self.logged = Some(now);
        }
        should_log
    }
}

impl FlowControl {
    /// Limits requests to `rate` per second, with bursts of up to `burst`. No limit unless `rate`
    /// is positive.
    pub(crate) fn set(&self, rate: i32, burst: i32) {
        let rate = f64::from(rate);
        // Same ratio as client-go's defaults of 5 and 10.
        let burst = if burst > 0 { f64::from(burst) } else { rate * 2.0 };
        *self.lock() = (rate > 0.0).then(|| Limit {
            rate,
            burst,
            bucket: TokenBucket::full(burst, Instant::now()),
            logged: None,
        });
    }

    /// Returns the same limit with a separate bucket, for another API server.
    pub(crate) fn separate(&self) -> Self {
        let limit = self.lock().as_ref().map(|limit| Limit {
            rate: limit.rate,
            burst: limit.burst,
            bucket: TokenBucket::full(limit.burst, Instant::now()),
            logged: None,
        });
        Self(Arc::new(Mutex::new(limit)))
    }

    pub(super) fn limit<S>(&self, inner: S) -> Limited<S> {
        let flow_control = self.clone();
        Limited { inner, flow_control }
    }

    /// Returns the delay before sending the request, or `None` if there is no limit.
    fn take(&self) -> Option<Duration> {
        let now = Instant::now();
        let mut limit = self.lock();
        let limit = limit.as_mut()?;
        let wait = limit.take(now);
        if limit.should_log(wait, now) {
            let rate = limit.rate;
            tracing::info!(
                ?wait,
                rate,
                "request delayed by client-side throttling, not by priority and fairness"
            );
        }
        Some(wait)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Limit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A token taken in advance. Returned to the bucket if the request is dropped while waiting.
struct Reservation(Option<FlowControl>);

impl Reservation {
    fn spend(mut self) {
        self.0 = None;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(flow_control) = self.0.take()
            && let Some(limit) = flow_control.lock().as_mut()
        {
            limit.bucket.tokens += 1.0;
        }
    }
}

#[derive(Clone)]
pub(super) struct Limited<S> {
    inner: S,
    flow_control: FlowControl,
}

impl<S, A, B> Service<Request<A>> for Limited<S>
where
    S: Service<Request<A>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    A: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Either<S::Future, BoxFuture<'static, Result<Response<B>, BoxError>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let wait = match is_watch(request.uri()) {
            true => None,
            false => self.flow_control.take(),
        };
        // Don't box the future in the common case.
        let Some(wait) = wait.filter(|wait| !wait.is_zero()) else {
            return Either::Left(self.inner.call(request));
        };
        // `self.inner` was polled for readiness and the clone wasn't, so call the former.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let reservation = Reservation(Some(self.flow_control.clone()));
        Either::Right(Box::pin(async move {
            sleep(wait).await;
            reservation.spend();
            inner.call(request).await
        }))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tower::{ServiceExt, service_fn};

    use super::*;

    async fn send(flow_control: &FlowControl, target: &str) -> Duration {
        let server = service_fn(|_| std::future::ready(Ok::<_, BoxError>(Response::new(()))));
        let request = Request::get(target).body(()).unwrap();
        let started = Instant::now();
        flow_control.limit(server).oneshot(request).await.unwrap();
        started.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_not_limited_by_default() {
        let flow_control = FlowControl::default();
        for (rate, burst) in [(0, 0), (-1, 10), (i32::MIN, i32::MIN)] {
            flow_control.set(rate, burst);
            for _ in 0..1000 {
                assert_eq!(send(&flow_control, "/api/v1/pods").await, Duration::ZERO);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_limited_to_the_rate_after_a_burst() {
        let flow_control = FlowControl::default();
        flow_control.set(10, 5);
        let started = Instant::now();
        let all = (0..25).map(|_| send(&flow_control, "/api/v1/pods"));
        futures::future::join_all(all).await;
        assert_eq!(started.elapsed().as_millis() / 100, 20);
        // The bucket refills to its capacity, but not beyond.
        sleep(Duration::from_secs(60)).await;
        for _ in 0..5 {
            assert_eq!(send(&flow_control, "/api/v1/pods").await, Duration::ZERO);
        }
        assert!(send(&flow_control, "/api/v1/pods").await > Duration::from_millis(90));
    }

    #[tokio::test(start_paused = true)]
    async fn burst_defaults_to_twice_the_rate() {
        let flow_control = FlowControl::default();
        flow_control.set(3, 0);
        for _ in 0..6 {
            assert_eq!(send(&flow_control, "/api/v1/pods").await, Duration::ZERO);
        }
        assert!(!send(&flow_control, "/api/v1/pods").await.is_zero());
    }

    #[tokio::test(start_paused = true)]
    async fn watches_are_not_limited() {
        let flow_control = FlowControl::default();
        flow_control.set(1, 1);
        send(&flow_control, "/api/v1/pods").await;
        for _ in 0..10 {
            assert_eq!(
                send(&flow_control, "/api/v1/pods?watch=true").await,
                Duration::ZERO
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn dropping_a_waiting_request_does_not_delay_others() {
        let flow_control = FlowControl::default();
        flow_control.set(1, 1);
        send(&flow_control, "/api/v1/pods").await;
        for _ in 0..100 {
            let waiting = send(&flow_control, "/api/v1/pods");
            assert!(waiting.now_or_never().is_none());
        }
        assert_eq!(send(&flow_control, "/api/v1/pods").await.as_secs(), 1);
    }
}
