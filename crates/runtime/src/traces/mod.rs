//! Traces, with the feature `opentelemetry`: a span for each reconcile and each webhook review,
//! with child spans for the requests to the API server.
//!
//! Spans go to the tracer provider that the operator installs and are independent of `tracing`
//! spans: log filters do not affect them, and they work along with the operator's own subscriber.
//! Without a provider nothing is recorded, and without the feature this module consists of a few
//! empty functions.

#[cfg(not(feature = "opentelemetry"))]
mod off;
#[cfg(feature = "opentelemetry")]
mod on;
#[cfg(feature = "opentelemetry")]
mod trace_context;
#[cfg(feature = "opentelemetry")]
mod url_template;

#[cfg(not(feature = "opentelemetry"))]
pub(crate) use off::{Trace, trace_requests};
#[cfg(feature = "opentelemetry")]
pub(crate) use on::{Trace, trace_requests};

/// The reconcile that a span describes.
#[cfg_attr(
    not(feature = "opentelemetry"),
    expect(dead_code, reason = "there are no spans")
)]
pub(crate) struct Reconcile<'a> {
    pub(crate) controller: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) id: &'a str,
}
