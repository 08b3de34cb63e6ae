//! Retries requests that the API server could not handle.
//!
//! | status | idempotent request | creates and JSON patches |
//! |---|---|---|
//! | 429 Too Many Requests: not started | repeated | repeated if `Retry-After` is set |
//! | 503 Service Unavailable | repeated | repeated if `Retry-After` is set |
//! | 504 Gateway Timeout: possibly executed | repeated | never |
//!
//! For comparison, client-go retries any request if the response is a 429 or 5xx with a
//! `Retry-After` header, and kube retries any request with status 429, 503 or 504.
//!
//! The API server sets this header if it has not started processing the request. A 504 means that
//! it has: the object may exist already, and if its name is generated, a retry would create another
//! one.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, Request, Response, StatusCode};
use kube::client::Body;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::BoxError;
use tower::retry::Policy;

use super::request::is_idempotent;
use crate::backoff::Backoff;
use crate::deadline::scale;
use crate::random::random_share;

/// These retries take about six seconds in total, or more with `Retry-After`.
const MAX_RETRIES: u32 = 6;
const BACKOFF: Backoff = Backoff {
    min: Duration::from_millis(100),
    max: Duration::from_secs(5),
};
/// Upper bound for `Retry-After`.
///
/// If the server asks for a longer delay, we still retry after this time rather than giving up: the
/// caller's own backoff, which starts at a few milliseconds, would retry even sooner.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);
/// Returns the last response instead of retrying after this time. Same as the default of the API
/// server's `--request-timeout`.
const TIME_LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(super) struct Retries {
    count: u32,
    started: Instant,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            count: 0,
            started: Instant::now(),
        }
    }
}

impl<B> Policy<Request<Body>, Response<B>, BoxError> for Retries {
    type Future = Sleep;

    fn retry(
        &mut self,
        request: &mut Request<Body>,
        result: &mut Result<Response<B>, BoxError>,
    ) -> Option<Sleep> {
        let response = result.as_ref().ok()?;
        let asked = retry_after(response.headers());
        if self.count == MAX_RETRIES || !may_repeat(request, response.status(), asked.is_some()) {
            return None;
        }
        let pause = backoff(self.count).max(asked.unwrap_or_default().min(MAX_RETRY_AFTER));
        self.count += 1;
        let at = Instant::now() + pause;
        (at <= self.started + TIME_LIMIT).then(|| sleep_until(at))
    }

    /// Returns `None` for streaming bodies, which can't be cloned.
    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        // The time starts with the first attempt, not when the policy was created.
        if self.count == 0 {
            self.started = Instant::now();
        }
        let mut copy = Request::new(request.body().try_clone()?);
        copy.method_mut().clone_from(request.method());
        copy.uri_mut().clone_from(request.uri());
        copy.headers_mut().clone_from(request.headers());
        copy.extensions_mut().clone_from(request.extensions());
        *copy.version_mut() = request.version();
        Some(copy)
    }
}

fn may_repeat<B>(request: &Request<B>, status: StatusCode, has_retry_after: bool) -> bool {
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            has_retry_after || is_idempotent(request)
        }
        StatusCode::GATEWAY_TIMEOUT => is_idempotent(request),
        _ => false,
    }
}

/// Dates aren't supported, because the API server always sends seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn backoff(count: u32) -> Duration {
    // Subtract up to half of the delay as jitter, to spread out requests that failed concurrently.
    scale(BACKOFF.delay_after(count), 0.5 + random_share() / 2.0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use http::Method;
    use http::header::CONTENT_TYPE;
    use tower::retry::Retry;
    use tower::{ServiceExt, service_fn};

    use super::*;

    /// Sends a request to a server that always gives the same response. Returns the number of
    /// attempts and the total time.
    async fn attempts(
        method: Method,
        content_type: &str,
        status: u16,
        retry_after: Option<&'static str>,
    ) -> (u32, Duration) {
        let count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&count);
        let server = service_fn(move |_: Request<Body>| {
            counted.fetch_add(1, Relaxed);
            let mut response = Response::builder().status(status);
            if let Some(value) = retry_after {
                response = response.header(RETRY_AFTER, value);
            }
            std::future::ready(Ok::<_, BoxError>(response.body(()).unwrap()))
        });
        let request = Request::builder()
            .method(method)
            .uri("/api/v1/namespaces/a/configmaps")
            .header(CONTENT_TYPE, content_type);
        let started = Instant::now();
        let request = request.body(Body::from(b"{}".to_vec())).unwrap();
        let response = Retry::new(Retries::default(), server).oneshot(request).await;
        assert_eq!(response.unwrap().status(), status);
        (count.load(Relaxed), started.elapsed())
    }

    const JSON: &str = "application/json";
    const APPLY: &str = "application/apply-patch+yaml";
    const JSON_PATCH: &str = "application/json-patch+json";

    #[tokio::test(start_paused = true)]
    async fn create_that_may_have_been_executed_is_not_repeated() {
        for retry_after in [None, Some("1")] {
            assert_eq!(attempts(Method::POST, JSON, 504, retry_after).await.0, 1);
            assert_eq!(attempts(Method::PATCH, JSON_PATCH, 504, retry_after).await.0, 1);
        }
        assert_eq!(attempts(Method::POST, JSON, 503, None).await.0, 1);
        assert_eq!(attempts(Method::POST, JSON, 429, None).await.0, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn create_that_was_not_started_is_repeated() {
        for status in [429, 503] {
            assert_eq!(attempts(Method::POST, JSON, status, Some("1")).await.0, 7);
            assert_eq!(attempts(Method::PATCH, JSON_PATCH, status, Some("1")).await.0, 7);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn idempotent_requests_are_repeated_for_some_seconds() {
        for status in [429, 503, 504] {
            for (method, content_type) in [
                (Method::GET, JSON),
                (Method::PUT, JSON),
                (Method::DELETE, JSON),
                (Method::PATCH, APPLY),
            ] {
                let (count, elapsed) = attempts(method, content_type, status, None).await;
                assert_eq!(count, 7);
                let range = Duration::from_secs(3)..Duration::from_secs(7);
                assert!(range.contains(&elapsed), "{elapsed:?}");
            }
        }
        for status in [200, 404, 409, 500, 502] {
            assert_eq!(attempts(Method::GET, JSON, status, None).await.0, 1, "{status}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_is_capped_and_kept_within_the_time_limit() {
        let (count, elapsed) = attempts(Method::GET, JSON, 429, Some("9")).await;
        assert_eq!((count, elapsed.as_secs()), (7, 54));
        let (count, elapsed) = attempts(Method::GET, JSON, 429, Some("20")).await;
        assert_eq!((count, elapsed.as_secs()), (4, 60));
        for endless in ["3600", "18446744073709551615"] {
            let (count, elapsed) = attempts(Method::POST, JSON, 429, Some(endless)).await;
            assert_eq!((count, elapsed.as_secs()), (3, 60), "{endless}");
        }
        let (count, elapsed) = attempts(Method::GET, JSON, 429, Some("Sun, 22 Nov 2026 15:00:00 GMT")).await;
        assert!(
            count == 7 && elapsed < Duration::from_secs(7),
            "{count} in {elapsed:?}"
        );
    }
}
