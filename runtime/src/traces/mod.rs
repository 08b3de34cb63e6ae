//! Traces, with the feature `opentelemetry`: a span for each reconcile and each review of a webhook, with a span for each
//! request to the API server within.
//!
//! Spans go to the tracer provider that the operator installs, and have nothing to do with those of `tracing`: filters of
//! the log leave them alone, and a subscriber of the operator's own works with them. Without a provider nothing is
//! recorded, and without the feature this module is a few empty functions.

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

/// The reconcile that a span is about.
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
