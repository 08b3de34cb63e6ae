//! OpenTelemetry traces. Requires the feature `opentelemetry`.
//!
//! There is a span for each reconcile and for each review by a webhook. Requests to the API server
//! are child spans.
//!
//! Spans are passed to the tracer provider that the operator has installed; without a provider,
//! nothing is recorded. They are unrelated to the spans of `tracing`, so log filters do not affect
//! them, and they work with any subscriber. If the feature is disabled, this module consists of
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
