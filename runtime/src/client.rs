//! The client of a manager: how long it waits for an answer, and which requests it repeats.
//!
//! kube's own defaults wait for ever: a request that reached a server which then hangs, or whose connection a network
//! drops in silence, would hold its reconcile for good, and a list its cache. And they repeat a refused request with
//! pauses that double up to a quarter of an hour, so that a reconcile could sleep long after the API server has
//! recovered. Here both have an end that people can wait for; after it the watch or the queue tries again, and says
//! in the log why.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use kube::client::ClientBuilder;
use kube::client::retry::RetryPolicy;
use kube::{Client, Config};
use tower::Service;
use tower::retry::RetryLayer;

use crate::metrics::Metrics;

/// How long the API server may be silent on a connection that is waited on. It answers ordinary requests within its
/// own `--request-timeout` of 60 s, and watches get a bookmark every 60 s.
const SILENCE: Duration = Duration::from_secs(90);
/// How often a request is repeated that was refused with 429, 503 or 504: for about six seconds unless the server
/// itself says when to come back.
const REPEATS: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A client with these limits whose requests count, the repeated ones each.
pub(crate) fn of_manager(config: Config, metrics: &Metrics) -> Result<Client, kube::Error> {
    let counted = metrics.count_requests(&config.cluster_url);
    let repeat = RetryPolicy::new(FIRST_PAUSE, LONGEST_PAUSE, REPEATS, true);
    let repeat = RetryLayer::new(repeat.expect("the first pause is shorter than the longest"));
    Ok(ClientBuilder::try_from(limited(config))?
        .with_layer(&tower::layer::layer_fn(Shared::new))
        .with_layer(&counted)
        .with_layer(&repeat)
        .build())
}

/// The configuration with our limit in place of kube's defaults.
fn limited(mut config: Config) -> Config {
    config.read_timeout = Some(SILENCE);
    // Otherwise the time that a connection lay idle would count against the next request on it.
    config.reset_reader_on_write = true;
    config.default_retry = false;
    config
}

/// A service that can be cloned, as repeating asks for; kube's cannot. Nothing in it keeps state between being ready
/// and being called, so the clones may share one.
struct Shared<S>(Arc<Mutex<S>>);

impl<S> Shared<S> {
    fn new(service: S) -> Self {
        Self(Arc::new(Mutex::new(service)))
    }
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Service<R>, R> Service<R> for Shared<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        service.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        service.call(request)
    }
}
