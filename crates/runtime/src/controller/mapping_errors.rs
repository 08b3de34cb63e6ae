//! Failures of mapping functions. No caller could handle them, so they are logged, counted, and
//! shown in `/debug/queues`.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::log_limit::LogLimit;
use crate::metrics::Counter;
use crate::text::join_lines;

/// The failures of one controller. Clones share the same state.
#[derive(Clone)]
pub(crate) struct MappingErrors(Arc<Inner>);

struct Inner {
    controller: String,
    counter: Counter,
    /// The first list of a kind may contain thousands of objects.
    limit: LogLimit,
    seen: Mutex<Seen>,
}

/// What has failed so far.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    pub(crate) count: u64,
    pub(crate) last: Option<String>,
}

impl MappingErrors {
    pub(crate) fn new(controller: &str, counter: Counter) -> Self {
        Self(Arc::new(Inner {
            controller: controller.to_owned(),
            counter,
            limit: LogLimit::default(),
            seen: Mutex::default(),
        }))
    }

    /// `kind` and `object` are what the function was called for.
    pub(super) fn note(&self, kind: &str, object: &dyn fmt::Display, error: &str) {
        let error = join_lines(error);
        self.0.counter.inc();
        let mut seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.count += 1;
        seen.last = Some(format!("{kind} {object}: {error}"));
        drop(seen);
        if let Some(left_out) = self.0.limit.permit() {
            let controller = &self.0.controller;
            tracing::error!(controller, kind, %object, left_out, error, "mapping function failed");
        }
    }

    pub(crate) fn seen(&self) -> Seen {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
