//! Counters, gauges and histograms. All of them are handles to atomics, and cheap to clone.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::exposition::{Labels, format_number};

/// A number that never decreases (e.g. the number of requests served).
#[derive(Clone, Debug)]
pub struct Counter(Arc<Float>);

/// A number that can increase and decrease (e.g. the number of open connections).
#[derive(Clone, Debug)]
pub struct Gauge(Arc<Float>);

/// Counts values in buckets (e.g. durations in seconds).
#[derive(Clone, Debug)]
pub struct Histogram(Arc<Distribution>);

impl Counter {
    /// Increments the counter by one.
    pub fn inc(&self) {
        self.0.add(1.0);
    }

    /// Increments the counter by `amount`. Negative numbers and NaN are ignored, since counters
    /// must not decrease.
    pub fn add(&self, amount: f64) {
        if amount > 0.0 {
            self.0.add(amount);
        }
    }

    /// Returns the current value.
    pub fn get(&self) -> f64 {
        self.0.get()
    }

    /// For counters that are maintained elsewhere, e.g. by the kernel.
    pub(crate) fn set(&self, value: f64) {
        self.0.set(value);
    }
}

impl Gauge {
    /// Sets the gauge to `value`.
    pub fn set(&self, value: f64) {
        self.0.set(value);
    }

    /// Adds `amount`, which can be negative.
    pub fn add(&self, amount: f64) {
        self.0.add(amount);
    }

    /// Returns the current value.
    pub fn get(&self) -> f64 {
        self.0.get()
    }
}

impl Histogram {
    /// Adds a value. NaN is ignored.
    pub fn observe(&self, value: f64) {
        if value.is_nan() {
            return;
        }
        let Distribution { bounds, counts, sum } = &*self.0;
        let bucket = bounds.partition_point(|bound| *bound < value);
        counts[bucket].fetch_add(1, Ordering::Relaxed);
        sum.add(value);
    }

    /// Adds a duration in seconds.
    pub fn observe_duration(&self, duration: Duration) {
        self.observe(duration.as_secs_f64());
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.0
            .counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .sum()
    }
}

#[derive(Debug, Default)]
struct Float(AtomicU64);

impl Float {
    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    fn add(&self, amount: f64) {
        let sum = |bits| Some((f64::from_bits(bits) + amount).to_bits());
        // Can't fail, since the closure never returns `None`.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
    }
}

#[derive(Debug)]
struct Distribution {
    bounds: Arc<[f64]>,
    /// Number of values per bucket. The last bucket is for values above all bounds.
    counts: Box<[AtomicU64]>,
    sum: Float,
}

/// Implemented by [`Counter`], [`Gauge`] and [`Histogram`]. This trait is sealed.
pub trait Instrument: Clone + Send + Sync + 'static + sealed::Sealed {}

impl Instrument for Counter {}
impl Instrument for Gauge {}
impl Instrument for Histogram {}

pub(super) mod sealed {
    use super::*;

    pub trait Sealed {
        /// Type in the text format.
        const TYPE: &'static str;

        fn new(bounds: &Arc<[f64]>) -> Self;

        /// Writes all lines of a series.
        fn write(&self, name: &str, labels: Labels<'_>, text: &mut String);
    }

    impl Sealed for Counter {
        const TYPE: &'static str = "counter";

        fn new(_: &Arc<[f64]>) -> Self {
            Self(Arc::default())
        }

        fn write(&self, name: &str, labels: Labels<'_>, text: &mut String) {
            let _ = writeln!(text, "{name}{labels} {}", format_number(self.get()));
        }
    }

    impl Sealed for Gauge {
        const TYPE: &'static str = "gauge";

        fn new(_: &Arc<[f64]>) -> Self {
            Self(Arc::default())
        }

        fn write(&self, name: &str, labels: Labels<'_>, text: &mut String) {
            let _ = writeln!(text, "{name}{labels} {}", format_number(self.get()));
        }
    }

    impl Sealed for Histogram {
        const TYPE: &'static str = "histogram";

        fn new(bounds: &Arc<[f64]>) -> Self {
            let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
            Self(Arc::new(Distribution {
                bounds: Arc::clone(bounds),
                counts,
                sum: Float::default(),
            }))
        }

        fn write(&self, name: &str, labels: Labels<'_>, text: &mut String) {
            let Distribution { bounds, counts, sum } = &*self.0;
            // Compute the total from the buckets rather than counting it separately, so that both
            // stay consistent while values are added concurrently.
            let mut count = 0;
            for (bound, within) in bounds.iter().copied().chain([f64::INFINITY]).zip(counts) {
                count += within.load(Ordering::Relaxed);
                let bound = format_number(bound);
                let _ = writeln!(text, "{name}_bucket{} {count}", labels.and("le", &bound));
            }
            let _ = writeln!(text, "{name}_sum{labels} {}", format_number(sum.get()));
            let _ = writeln!(text, "{name}_count{labels} {count}");
        }
    }
}
