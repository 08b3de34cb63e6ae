//! Metric families by name, and what their text is.

use std::any::Any;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::exposition::{Labels, escape_help, is_label_name, is_metric_name};
use super::instruments::Instrument;

/// Why a metric cannot be registered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// Prometheus would not read the name.
    #[error("invalid metric name `{0}`: expected letters, digits, `_` and `:`, not starting with a digit")]
    Name(String),

    /// Prometheus would not read the label, or keeps it for itself.
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

    /// The bounds of a histogram must be numbers that rise.
    #[error("invalid bounds of histogram `{0}`: expected finite numbers in increasing order")]
    Bounds(String),

    /// The name is that of another metric.
    #[error("metric `{0}` is already registered with another type, help, labels or bounds")]
    Taken(String),
}

/// Metrics of one name that differ in the values of their `N` labels. Clones are handles to the same ones.
///
/// ```
/// # fn main() -> Result<(), rbuilder::metrics::MetricError> {
/// # let metrics = rbuilder::metrics::Metrics::new();
/// let backups = metrics.counter("backups_total", "Backups made.", ["result"])?;
/// backups.with(["success"]).inc();
/// # assert!(metrics.text().contains("backups_total{result=\"success\"} 1\n"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Family<M, const N: usize>(Arc<Described<M, N>>);

impl<M, const N: usize> Clone for Family<M, N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: Instrument, const N: usize> Family<M, N> {
    /// The metric with these label values, in the order of the labels; made at zero when it is new.
    ///
    /// Keep the handle where the labels do not change: finding it costs a search. Each combination of values is
    /// kept, and sent with every scrape, until it is [removed](Self::remove); names of objects make bad labels.
    pub fn with(&self, values: [&str; N]) -> M {
        let values = values.map(str::to_owned);
        if let Some(found) = read(&self.0.series).get(&values) {
            return found.clone();
        }
        let make = || M::new(&self.0.bounds);
        write(&self.0.series).entry(values).or_insert_with(make).clone()
    }

    /// Forgets the metric with these label values; handles to it count on, unseen.
    pub fn remove(&self, values: [&str; N]) {
        write(&self.0.series).remove(&values.map(str::to_owned));
    }
}

/// A family with what is said about it.
#[derive(Debug)]
struct Described<M, const N: usize> {
    name: String,
    help: String,
    labels: [String; N],
    /// Bounds of a histogram's buckets; none for other types.
    bounds: Arc<[f64]>,
    series: RwLock<BTreeMap<[String; N], M>>,
}

impl<M: Instrument, const N: usize> Described<M, N> {
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

    fn says_the_same(&self, other: &Self) -> bool {
        self.labels == other.labels && self.help == other.help && self.bounds == other.bounds
    }
}

/// A family whose type is not known any more.
trait AnyFamily: Send + Sync {
    fn write(&self, text: &mut String);

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<M: Instrument, const N: usize> AnyFamily for Described<M, N> {
    /// A family without series is left out, as Go's client does.
    fn write(&self, text: &mut String) {
        let series = read(&self.series);
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

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// All families, and what is to be done before they are read.
#[derive(Default)]
pub(super) struct Registry {
    families: Mutex<BTreeMap<String, Arc<dyn AnyFamily>>>,
    before_scrape: Mutex<Vec<Arc<dyn Fn() + Send + Sync>>>,
}

impl Registry {
    /// The family of that name; a new one unless the same has been asked for before.
    pub(super) fn family<M: Instrument, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        bounds: &[f64],
    ) -> Result<Family<M, N>, MetricError> {
        let asked = described(name, help, labels, bounds);
        asked.check()?;
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        match families.entry(name.to_owned()) {
            Entry::Vacant(place) => {
                let family = Family(Arc::new(asked));
                place.insert(Arc::clone(&family.0) as _);
                Ok(family)
            }
            Entry::Occupied(taken) => {
                let found = Arc::clone(taken.get())
                    .into_any()
                    .downcast::<Described<M, N>>()
                    .ok();
                let same = found.filter(|found| found.says_the_same(&asked));
                same.map(Family)
                    .ok_or_else(|| MetricError::Taken(name.to_owned()))
            }
        }
    }

    /// A family of this crate's own, whose description is known to be good.
    pub(super) fn own<M: Instrument, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        bounds: &[f64],
    ) -> Family<M, N> {
        let family = Family(Arc::new(described(name, help, labels, bounds)));
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let before = families.insert(name.to_owned(), Arc::clone(&family.0) as _);
        debug_assert!(family.0.check().is_ok() && before.is_none(), "{name}");
        family
    }

    pub(super) fn before_scrape(&self, update: impl Fn() + Send + Sync + 'static) {
        self.before_scrape
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::new(update));
    }

    /// All families that have series, by name.
    pub(super) fn text(&self) -> String {
        // Called without the lock, so that an update may register what it finds to be missing.
        let updates = self
            .before_scrape
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        updates.iter().for_each(|update| update());
        let mut text = String::new();
        for family in self
            .families
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
        {
            family.write(&mut text);
        }
        text
    }
}

fn described<M, const N: usize>(
    name: &str,
    help: &str,
    labels: [&str; N],
    bounds: &[f64],
) -> Described<M, N> {
    Described {
        name: name.to_owned(),
        help: help.to_owned(),
        labels: labels.map(str::to_owned),
        bounds: bounds.into(),
        series: RwLock::default(),
    }
}

// Nothing that can panic runs while these locks are held, so a poisoned map is a whole one.

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
