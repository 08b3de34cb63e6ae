//! Counts the requests to the API server.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use tower::{Layer, Service};

use super::registry::{Family, Registry};
use super::{Counter, Metrics};

/// What stands for the status of a request that got no answer. client-go's.
const NO_ANSWER: &str = "<error>";

pub(super) fn register(registry: &Registry) -> Family<Counter, 3> {
    registry.own(
        "rest_client_requests_total",
        "Requests to the API server, by status, method and host.",
        ["code", "host", "method"],
        &[],
    )
}

/// Makes a client's requests count. One that the client itself repeats counts once, by its last answer.
#[derive(Clone)]
pub(crate) struct CountRequests {
    requests: Family<Counter, 3>,
    host: Arc<str>,
}

impl Metrics {
    /// The layer for clients of the API server at this address; requests on their way there name a path only.
    pub(crate) fn count_requests(&self, server: &Uri) -> CountRequests {
        let host = server.authority().map(ToString::to_string).unwrap_or_default();
        CountRequests {
            requests: self.0.requests.clone(),
            host: host.into(),
        }
    }
}

impl<S> Layer<S> for CountRequests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            counting: self.clone(),
        }
    }
}

/// A client's service whose requests count.
#[derive(Clone)]
pub(crate) struct Counted<S> {
    inner: S,
    counting: CountRequests,
}

impl<S, A, B> Service<Request<A>> for Counted<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let method = request.method().clone();
        let CountRequests { requests, host } = self.counting.clone();
        let answered = self.inner.call(request);
        Box::pin(async move {
            let answer = answered.await;
            let code = answer.as_ref().map(|answer| answer.status());
            let code = code.as_ref().map_or(NO_ANSWER, |code| code.as_str());
            requests.with([code, &host, method.as_str()]).inc();
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn answers_and_failures_are_counted_by_code_method_and_host() {
        let metrics = Metrics::new();
        let server = tower::service_fn(|request: Request<u16>| async move {
            match request.into_body() {
                0 => Err("connection reset"),
                code => Ok(Response::builder().status(code).body(()).unwrap()),
            }
        });
        let service = metrics
            .count_requests(&Uri::from_static("https://10.0.0.1:6443/prefix"))
            .layer(server);
        for (method, code) in [("GET", 200), ("GET", 200), ("PATCH", 409), ("GET", 0)] {
            let request = Request::builder().method(method).uri("/api/v1/pods?limit=5");
            let _ = service.clone().oneshot(request.body(code).unwrap()).await;
        }
        let text = metrics.text();
        let found: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("rest_client_requests_total"))
            .collect();
        assert_eq!(
            found,
            [
                r#"{code="200",host="10.0.0.1:6443",method="GET"} 2"#,
                r#"{code="409",host="10.0.0.1:6443",method="PATCH"} 1"#,
                r#"{code="<error>",host="10.0.0.1:6443",method="GET"} 1"#,
            ]
        );
    }
}
