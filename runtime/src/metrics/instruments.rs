//! What is counted with: counters, gauges and histograms, each a cheap handle to atomics.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::exposition::{Labels, number};

/// A number that only grows, such as requests served.
#[derive(Clone, Debug)]
pub struct Counter(Arc<Float>);

/// A number that goes up and down, such as connections open.
#[derive(Clone, Debug)]
pub struct Gauge(Arc<Float>);

/// How often a value fell below each of a row of bounds, such as durations in seconds.
#[derive(Clone, Debug)]
pub struct Histogram(Arc<Distribution>);

impl Counter {
    /// Adds one.
    pub fn inc(&self) {
        self.0.add(1.0);
    }

    /// Adds `amount`; what is negative or not a number counts as zero, as counters never fall.
    pub fn add(&self, amount: f64) {
        if amount > 0.0 {
            self.0.add(amount);
        }
    }

    /// What it has come to.
    pub fn get(&self) -> f64 {
        self.0.get()
    }

    /// Takes over a count that somebody else keeps, such as the kernel.
    pub(crate) fn set(&self, value: f64) {
        self.0.set(value);
    }
}

impl Gauge {
    /// Replaces the value.
    pub fn set(&self, value: f64) {
        self.0.set(value);
    }

    /// Adds `amount`, which may be negative.
    pub fn add(&self, amount: f64) {
        self.0.add(amount);
    }

    /// The value as it is now.
    pub fn get(&self) -> f64 {
        self.0.get()
    }
}

impl Histogram {
    /// Counts `value`; what is not a number is left out.
    pub fn observe(&self, value: f64) {
        if value.is_nan() {
            return;
        }
        let Distribution { bounds, counts, sum } = &*self.0;
        let bucket = bounds.partition_point(|bound| *bound < value);
        counts[bucket].fetch_add(1, Ordering::Relaxed);
        sum.add(value);
    }

    /// Counts a duration, in seconds.
    pub fn observe_duration(&self, duration: Duration) {
        self.observe(duration.as_secs_f64());
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.0
            .counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .sum()
    }
}

/// An `f64` that many threads add to.
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
        // The closure always gives a value, so the update cannot be refused.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
    }
}

#[derive(Debug)]
struct Distribution {
    bounds: Arc<[f64]>,
    /// Values up to each bound and above the one before; one more for those above all bounds.
    counts: Box<[AtomicU64]>,
    sum: Float,
}

/// What [`Counter`], [`Gauge`] and [`Histogram`] have in common. It cannot be implemented elsewhere.
pub trait Instrument: Clone + Send + Sync + 'static + sealed::Sealed {}

impl Instrument for Counter {}
impl Instrument for Gauge {}
impl Instrument for Histogram {}

pub(super) mod sealed {
    use super::*;

    pub trait Sealed {
        /// What the type is called in the text.
        const TYPE: &'static str;

        fn new(bounds: &Arc<[f64]>) -> Self;

        /// Writes the lines of one series.
        fn write(&self, name: &str, labels: Labels<'_>, text: &mut String);
    }

    impl Sealed for Counter {
        const TYPE: &'static str = "counter";

        fn new(_: &Arc<[f64]>) -> Self {
            Self(Arc::default())
        }

        fn write(&self, name: &str, labels: Labels<'_>, text: &mut String) {
            let _ = writeln!(text, "{name}{labels} {}", number(self.get()));
        }
    }

    impl Sealed for Gauge {
        const TYPE: &'static str = "gauge";

        fn new(_: &Arc<[f64]>) -> Self {
            Self(Arc::default())
        }

        fn write(&self, name: &str, labels: Labels<'_>, text: &mut String) {
            let _ = writeln!(text, "{name}{labels} {}", number(self.get()));
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

        /// The count is that of the buckets just written, so that the two agree whatever is counted meanwhile.
        fn write(&self, name: &str, labels: Labels<'_>, text: &mut String) {
            let Distribution { bounds, counts, sum } = &*self.0;
            let mut count = 0;
            for (bound, within) in bounds.iter().copied().chain([f64::INFINITY]).zip(counts) {
                count += within.load(Ordering::Relaxed);
                let bound = number(bound);
                let _ = writeln!(text, "{name}_bucket{} {count}", labels.and("le", &bound));
            }
            let _ = writeln!(text, "{name}_sum{labels} {}", number(sum.get()));
            let _ = writeln!(text, "{name}_count{labels} {count}");
        }
    }
}
