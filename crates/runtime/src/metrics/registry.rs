//! Registry of metric families, which also writes the text format.

use std::any::Any;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::exposition::{Labels, escape_help, is_label_name, is_metric_name};
use super::foreign::{ForeignMetrics, SERIES_SUFFIXES};
use super::instruments::Instrument;

/// Error of registering a metric.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// The name isn't valid in Prometheus.
    #[error("invalid metric name `{0}`: expected letters, digits, `_` and `:`, not starting with a digit")]
    Name(String),

    /// The label is not valid in Prometheus, is reserved, or occurs twice.
    #[error(
        "invalid label `{label}` of metric `{metric}`: expected letters, digits and `_`, not starting with a digit or \
         `__`; each label must be listed once, and `le` is reserved for histograms"
    )]
    Label {
        /// Name of the metric.
        metric: String,
        /// Name of the label.
        label: String,
    },

    /// The bounds of a histogram must be finite and strictly increasing.
    #[error("invalid bounds of histogram `{0}`: expected finite numbers in increasing order")]
    Bounds(String),

    /// The name is in use by a different metric.
    #[error("metric `{0}` is already registered with another type, help, labels or bounds")]
    Taken(String),
}

/// All metrics with the same name, which differ in the values of `N` labels. Clones share the same
/// metrics.
///
/// ```
/// # fn main() -> Result<(), rbuilder::metrics::MetricError> {
/// # let metrics = rbuilder::metrics::Metrics::new();
/// let backups = metrics.counter("backups_total", "Number of backups created.", ["result"])?;
/// backups.with(["success"]).inc();
/// # assert!(metrics.text().contains("backups_total{result=\"success\"} 1\n"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Family<M, const N: usize>(Arc<FamilyData<M, N>>);

impl<M, const N: usize> Clone for Family<M, N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: Instrument, const N: usize> Family<M, N> {
    /// Returns the metric with the given label values, in the order of the labels. It is created
    /// with the value zero if it doesn't exist.
    ///
    /// Keep the handle to avoid repeated lookups. Each combination of values takes up memory, and
    /// is part of every scrape until it is [removed](Self::remove), so object names shouldn't be
    /// used as labels.
    pub fn with(&self, values: [&str; N]) -> M {
        let values = values.map(str::to_owned);
        // Most calls find an existing series, for which a read lock is enough.
        if let Some(found) = read_lock(&self.0.series).get(&values) {
            return found.clone();
        }
        let make = || M::new(&self.0.bounds);
        write_lock(&self.0.series)
            .entry(values)
            .or_insert_with(make)
            .clone()
    }

    /// Removes the metric with the given label values. Handles to it remain valid but no longer
    /// have any effect.
    pub fn remove(&self, values: [&str; N]) {
        write_lock(&self.0.series).remove(&values.map(str::to_owned));
    }
}

#[derive(Debug)]
struct FamilyData<M, const N: usize> {
    name: String,
    help: String,
    labels: [String; N],
    /// Upper bounds of a histogram's buckets. Empty for all other types.
    bounds: Arc<[f64]>,
    series: RwLock<BTreeMap<[String; N], M>>,
}

impl<M: Instrument, const N: usize> FamilyData<M, N> {
    fn check(&self) -> Result<(), MetricError> {
        if !is_metric_name(&self.name) {
            return Err(MetricError::Name(self.name.clone()));
        }
        for (at, label) in self.labels.iter().enumerate() {
            if !is_label_name(label) || self.labels[..at].contains(label) {
                return Err(MetricError::Label {
                    metric: self.name.clone(),
                    label: label.clone(),
                });
            }
        }
        let rise = self.bounds.windows(2).all(|pair| pair[0] < pair[1]);
        if !rise || !self.bounds.iter().all(|bound| bound.is_finite()) {
            return Err(MetricError::Bounds(self.name.clone()));
        }
        Ok(())
    }

    fn has_same_description(&self, other: &Self) -> bool {
        self.labels == other.labels && self.help == other.help && self.bounds == other.bounds
    }
}

trait AnyFamily: Send + Sync {
    fn write(&self, text: &mut String);

    /// Includes the names of all series.
    fn names(&self) -> Vec<String>;

    /// The first columns of the row in docs/metrics.md, i.e. name, type and labels.
    #[cfg(test)]
    fn row(&self) -> String;

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<M: Instrument, const N: usize> AnyFamily for FamilyData<M, N> {
    fn write(&self, text: &mut String) {
        let series = read_lock(&self.series);
        // Omit a family without any series, as Go's client does.
        if series.is_empty() {
            return;
        }
        let Self {
            name, help, labels, ..
        } = self;
        // Writing to a `String` can't fail.
        let _ = writeln!(
            text,
            "# HELP {name} {}\n# TYPE {name} {}",
            escape_help(help),
            M::TYPE
        );
        for (values, instrument) in series.iter() {
            instrument.write(name, Labels::new(labels, values), text);
        }
    }

    fn names(&self) -> Vec<String> {
        let suffixes: &[&str] = match M::TYPE {
            "histogram" => &SERIES_SUFFIXES,
            _ => &[],
        };
        let series = suffixes.iter().map(|suffix| format!("{}{suffix}", self.name));
        series.chain([self.name.clone()]).collect()
    }

    #[cfg(test)]
    fn row(&self) -> String {
        let labels = self.labels.iter().map(|label| format!("`{label}`"));
        let labels = labels.collect::<Vec<_>>().join(", ");
        format!("| `{}` | {} | {labels}", self.name, M::TYPE)
            .trim_end()
            .to_owned()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

#[derive(Default)]
pub(super) struct Registry {
    families: Mutex<BTreeMap<String, Arc<dyn AnyFamily>>>,
    before_scrape: Mutex<Vec<Arc<dyn Fn() + Send + Sync>>>,
    pub(super) foreign: ForeignMetrics,
}

impl Registry {
    pub(super) fn family<M: Instrument, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        bounds: &[f64],
    ) -> Result<Family<M, N>, MetricError> {
        let family = new_family(name, help, labels, bounds);
        family.check()?;
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        match families.entry(name.to_owned()) {
            Entry::Vacant(entry) => {
                let family = Family(Arc::new(family));
                entry.insert(Arc::clone(&family.0) as _);
                Ok(family)
            }
            Entry::Occupied(entry) => {
                let found = Arc::clone(entry.get())
                    .into_any()
                    .downcast::<FamilyData<M, N>>()
                    .ok();
                let same = found.filter(|found| found.has_same_description(&family));
                same.map(Family)
                    .ok_or_else(|| MetricError::Taken(name.to_owned()))
            }
        }
    }

    /// Registers a built-in family, which can't fail at runtime. Debug builds check its
    /// description.
    pub(super) fn own<M: Instrument, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        bounds: &[f64],
    ) -> Family<M, N> {
        let family = Family(Arc::new(new_family(name, help, labels, bounds)));
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let before = families.insert(name.to_owned(), Arc::clone(&family.0) as _);
        debug_assert!(family.0.check().is_ok() && before.is_none(), "{name}");
        family
    }

    /// The rows of docs/metrics.md, sorted by name.
    #[cfg(test)]
    pub(super) fn rows(&self) -> Vec<String> {
        let families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        families.values().map(|family| family.row()).collect()
    }

    pub(super) fn before_scrape(&self, update: impl Fn() + Send + Sync + 'static) {
        self.before_scrape
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::new(update));
    }

    /// Families are sorted by name, and followed by the metrics of other libraries.
    pub(super) fn text(&self) -> String {
        // Release the lock first, since a callback may register another metric.
        let updates = self
            .before_scrape
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        updates.iter().for_each(|update| update());
        let mut text = String::new();
        // Include families without any series, or a metric of another library could appear in one
        // scrape and be missing in the next.
        let mut names = HashSet::new();
        for family in self
            .families
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
        {
            family.write(&mut text);
            names.extend(family.names());
        }
        self.foreign.write(names, &mut text);
        text
    }
}

fn new_family<M, const N: usize>(
    name: &str,
    help: &str,
    labels: [&str; N],
    bounds: &[f64],
) -> FamilyData<M, N> {
    FamilyData {
        name: name.to_owned(),
        help: help.to_owned(),
        labels: labels.map(str::to_owned),
        bounds: bounds.into(),
        series: RwLock::default(),
    }
}

// Ignore poisoning: nothing can panic while these locks are held.

fn read_lock<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write_lock<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
