//! Metrics of webhooks, with the same names as in controller-runtime.

use std::time::Duration;

use http::StatusCode;

use super::controller::ActiveGuard;
use super::registry::{Family, Registry};
use super::{Counter, Gauge, Histogram, Metrics};

/// Prometheus' default buckets, which controller-runtime uses for webhooks.
const LATENCIES: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

pub(super) struct Families {
    requests: Family<Counter, 2>,
    latency: Family<Histogram, 1>,
    in_flight: Family<Gauge, 1>,
    panics: Counter,
    conversion_panics: Counter,
    conversions: Family<Counter, 1>,
}

impl Families {
    pub(super) fn register(registry: &Registry) -> Self {
        Self {
            requests: registry.own(
                "controller_runtime_webhook_requests_total",
                "Total number of webhook requests by HTTP status code.",
                ["code", "webhook"],
                &[],
            ),
            latency: registry.own(
                "controller_runtime_webhook_latency_seconds",
                "Latency of webhook requests in seconds.",
                ["webhook"],
                &LATENCIES,
            ),
            in_flight: registry.own(
                "controller_runtime_webhook_requests_in_flight",
                "Current number of webhook requests being served.",
                ["webhook"],
                &[],
            ),
            panics: registry
                .own(
                    "controller_runtime_webhook_panics_total",
                    "Total number of panics in admission webhooks.",
                    [],
                    &[],
                )
                .with([]),
            conversion_panics: registry
                .own(
                    "controller_runtime_conversion_webhook_panics_total",
                    "Total number of panics in conversion webhooks.",
                    [],
                    &[],
                )
                .with([]),
            conversions: registry.own(
                "rbuilder_conversion_reviews_total",
                "Total number of conversion reviews by result.",
                ["result"],
                &[],
            ),
        }
    }
}

/// A webhook is identified by its path.
#[derive(Clone)]
pub(crate) struct WebhookMetrics {
    path: String,
    requests: Family<Counter, 2>,
    latency: Histogram,
    in_flight: Gauge,
    panics: Counter,
    conversion_panics: Counter,
}

/// Counts ConversionReviews by result. The HTTP status doesn't tell, since failed reviews are
/// answered with 200 as well.
#[derive(Clone)]
pub(crate) struct ConversionMetrics {
    succeeded: Counter,
    failed: Counter,
}

impl Metrics {
    /// Creates the series for both results upfront, so that they start at zero.
    pub(crate) fn conversions(&self) -> ConversionMetrics {
        let conversions = &self.0.webhooks.conversions;
        ConversionMetrics {
            succeeded: conversions.with(["success"]),
            failed: conversions.with(["failure"]),
        }
    }

    /// Creates the series for status 200 and 500 upfront, so that they start at zero.
    pub(crate) fn webhook(&self, path: &str) -> WebhookMetrics {
        let families = &self.0.webhooks;
        for code in ["200", "500"] {
            families.requests.with([code, path]);
        }
        WebhookMetrics {
            path: path.to_owned(),
            requests: families.requests.clone(),
            latency: families.latency.with([path]),
            in_flight: families.in_flight.with([path]),
            panics: families.panics.clone(),
            conversion_panics: families.conversion_panics.clone(),
        }
    }
}

impl ConversionMetrics {
    pub(crate) fn answered(&self, is_converted: bool) {
        let counter = if is_converted {
            &self.succeeded
        } else {
            &self.failed
        };
        counter.inc();
    }
}

impl WebhookMetrics {
    pub(crate) fn in_flight(&self) -> ActiveGuard {
        ActiveGuard::new(&self.in_flight)
    }

    pub(crate) fn answered(&self, status: StatusCode, took: Duration) {
        self.requests.with([status.as_str(), &self.path]).inc();
        self.latency.observe_duration(took);
    }

    pub(crate) fn panicked(&self, converting: bool) {
        if converting {
            self.conversion_panics.inc();
        } else {
            self.panics.inc();
        }
    }
}
