//! Registers metric families and writes their text format.

use std::any::Any;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::exposition::{Labels, escape_help, is_label_name, is_metric_name};
use super::foreign::{ForeignMetrics, SERIES_SUFFIXES};
use super::instruments::Instrument;

/// An error from registering a metric.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// The name is not valid in Prometheus.
    #[error("invalid metric name `{0}`: expected letters, digits, `_` and `:`, not starting with a digit")]
    Name(String),

    /// The label is not valid in Prometheus, is reserved, or is listed twice.
    #[error(
        "invalid label `{label}` of metric `{metric}`: expected letters, digits and `_`, not starting with a digit or \
         `__`; each label must be listed once, and `le` is reserved for histograms"
    )]
    Label {
        /// The metric's name.
        metric: String,
        /// The label's name.
        label: String,
    },

    /// The bounds of a histogram are not finite numbers in increasing order.
    #[error("invalid bounds of histogram `{0}`: expected finite numbers in increasing order")]
    Bounds(String),

    /// A different metric with this name exists.
    #[error("metric `{0}` is already registered with another type, help, labels or bounds")]
    Taken(String),
}

/// The metrics with one name, which differ in the values of their `N` labels. Clones share them.
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
    /// Returns the metric with these label values, in the order of the labels, creating it with value zero.
    ///
    /// Keep the returned handle if the values do not change, to avoid the lookup. Each combination
    /// of values stays in memory and in every scrape until it is [removed](Self::remove), so do not
    /// use object names as labels.
    pub fn with(&self, values: [&str; N]) -> M {
        let values = values.map(str::to_owned);
        if let Some(found) = read_lock(&self.0.series).get(&values) {
            return found.clone();
        }
        let make = || M::new(&self.0.bounds);
        write_lock(&self.0.series)
            .entry(values)
            .or_insert_with(make)
            .clone()
    }

    /// Removes the metric with these label values. Existing handles to it have no further effect.
    pub fn remove(&self, values: [&str; N]) {
        write_lock(&self.0.series).remove(&values.map(str::to_owned));
    }
}

/// A family with its description.
#[derive(Debug)]
struct FamilyData<M, const N: usize> {
    name: String,
    help: String,
    labels: [String; N],
    /// The bucket bounds of a histogram; empty for other types.
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

/// A family with its type erased.
trait AnyFamily: Send + Sync {
    fn write(&self, text: &mut String);

    /// Returns the names of the family and of its series.
    fn names(&self) -> Vec<String>;

    /// Returns the start of the family's row in docs/metrics.md: name, type and labels.
    #[cfg(test)]
    fn row(&self) -> String;

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<M: Instrument, const N: usize> AnyFamily for FamilyData<M, N> {
    /// Writes the family. Omitted if it has no series, as in Go's client.
    fn write(&self, text: &mut String) {
        let series = read_lock(&self.series);
        if series.is_empty() {
            return;
        }
        let Self {
            name, help, labels, ..
        } = self;
        // Writing to a string cannot fail.
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

/// All families, and the functions to call before a scrape.
#[derive(Default)]
pub(super) struct Registry {
    families: Mutex<BTreeMap<String, Arc<dyn AnyFamily>>>,
    before_scrape: Mutex<Vec<Arc<dyn Fn() + Send + Sync>>>,
    pub(super) foreign: ForeignMetrics,
}

impl Registry {
    /// Registers a family, or returns the existing one with this name.
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

    /// Registers a built-in family, whose description is known to be valid.
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

    /// Returns the rows of the families in docs/metrics.md, ordered by name.
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

    /// Returns all families that have series, ordered by name, followed by those of other
    /// libraries.
    pub(super) fn text(&self) -> String {
        // Release the lock before calling them, so that an update may register a missing metric.
        let updates = self
            .before_scrape
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        updates.iter().for_each(|update| update());
        let mut text = String::new();
        // Include names without series, so that a foreign metric does not come and go with them.
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

// Nothing can panic while these locks are held, so even a poisoned map is consistent.

fn read_lock<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write_lock<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
