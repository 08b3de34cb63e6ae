//! Predicates, which filter events before they are added to a queue.
//!
//! A [`Predicate`] can access the object before and after a change. It is passed to
//! [`Controller::filter`](crate::Controller::filter) for the controller's own kind, or to
//! [`Watch::filter`](crate::Watch::filter) for the kind of a watch. If an event is filtered out,
//! nothing is reconciled, but the cache is still updated.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use rbuilder::predicate::{Predicate, generation_changed, labels_changed};
//!
//! let wanted: Predicate<ConfigMap> = generation_changed().or(labels_changed());
//! let named = Predicate::<ConfigMap>::new(|change| {
//!     change.object().metadata.name.as_deref() == Some("settings")
//! });
//! let both = wanted.and(named);
//! ```

use std::sync::Arc;

use kube::core::{ObjectMeta, Selector, SelectorExt};

use crate::cache::Change;
use crate::object::Watchable;

/// Filters a kind's events.
pub struct Predicate<K>(Arc<Matches<K>>);

type Matches<K> = dyn Fn(&Change<K>) -> bool + Send + Sync;

impl<K> Clone for Predicate<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> std::fmt::Debug for Predicate<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Predicate(…)")
    }
}

impl<K: Watchable> Predicate<K> {
    /// Creates a predicate from a function. `matches` must not block, since it holds up every event
    /// for this kind. If `matches` panics, the event is not filtered out.
    pub fn new(matches: impl Fn(&Change<K>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(matches))
    }

    /// Accepts events accepted by both predicates.
    pub fn and(self, other: Self) -> Self {
        Self::new(move |change| self.matches(change) && other.matches(change))
    }

    /// Accepts events accepted by at least one of the predicates.
    pub fn or(self, other: Self) -> Self {
        Self::new(move |change| self.matches(change) || other.matches(change))
    }

    /// Accepts events that are not accepted by this predicate.
    #[allow(clippy::should_implement_trait)] // named like `and` and `or`
    pub fn not(self) -> Self {
        Self::new(move |change| !self.matches(change))
    }

    /// Returns `true` if the event is accepted.
    pub fn matches(&self, change: &Change<K>) -> bool {
        (self.0)(change)
    }
}

/// Accepts creations, deletions, and updates for which `differ` returns `true`.
fn metadata_changed<K: Watchable>(
    differ: impl Fn(&ObjectMeta, &ObjectMeta) -> bool + Send + Sync + 'static,
) -> Predicate<K> {
    Predicate::new(move |change: &Change<K>| match change {
        Change::Applied {
            old: Some(old), new, ..
        } => {
            let (old, new) = (old.meta(), new.meta());
            // Always let deletion requests through, since finalizers are waiting for them.
            old.uid != new.uid || old.deletion_timestamp != new.deletion_timestamp || differ(old, new)
        }
        Change::Applied { old: None, .. } | Change::Deleted(_) => true,
    })
}

/// Accepts updates that change `metadata.generation`. Creations, deletions and deletion requests
/// are always accepted.
///
/// In kinds with a status subresource, changes to the status or the metadata don't affect the
/// generation, so this accepts changes to the spec. Some kinds have no generation (e.g. ConfigMap);
/// their updates are never accepted.
///
/// If your controller depends on labels or annotations as well, use `.or(labels_changed())`.
pub fn generation_changed<K: Watchable>() -> Predicate<K> {
    metadata_changed(|old, new| old.generation != new.generation)
}

/// Accepts updates that change labels. Creations, deletions and deletion requests are always
/// accepted.
pub fn labels_changed<K: Watchable>() -> Predicate<K> {
    metadata_changed(|old, new| old.labels != new.labels)
}

/// Accepts updates that change annotations. Creations, deletions and deletion requests are always
/// accepted.
pub fn annotations_changed<K: Watchable>() -> Predicate<K> {
    metadata_changed(|old, new| old.annotations != new.annotations)
}

/// Accepts events if the labels of the object match the selector before or after the change.
///
/// All other objects are still watched and cached. Use
/// [`Selection::labels`](crate::Selection::labels) to avoid that.
pub fn labels_match<K: Watchable>(selector: Selector) -> Predicate<K> {
    let none = std::collections::BTreeMap::new();
    Predicate::new(move |change: &Change<K>| {
        let matches = |object: &K| selector.matches(object.meta().labels.as_ref().unwrap_or(&none));
        match change {
            Change::Applied { old, new, .. } => matches(new) || old.as_deref().is_some_and(matches),
            Change::Deleted(old) => matches(old),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn deployment(generation: i64) -> Deployment {
        let mut object = Deployment::default();
        object.metadata.generation = Some(generation);
        object.metadata.uid = Some("1".to_owned());
        object
    }

    fn with(mut object: Deployment, key: &str, label: bool) -> Deployment {
        let entries = Some([(key.to_owned(), "x".to_owned())].into());
        if label {
            object.metadata.labels = entries;
        } else {
            object.metadata.annotations = entries;
        }
        object
    }

    fn update(old: &Deployment, new: &Deployment) -> Change<Deployment> {
        Change::Applied {
            old: Some(Arc::new(old.clone())),
            new: Arc::new(new.clone()),
            initial: false,
        }
    }

    fn check(predicate: &Predicate<Deployment>, change: &Change<Deployment>, expected: bool) {
        assert_eq!(predicate.matches(change), expected, "{change:?}");
    }

    #[test]
    fn each_predicate_checks_its_own_field() {
        let plain = deployment(1);
        let (labelled, annotated) = (with(plain.clone(), "a", true), with(plain.clone(), "a", false));
        let cases = [
            (generation_changed(), update(&plain, &deployment(2))),
            (labels_changed(), update(&plain, &labelled)),
            (annotations_changed(), update(&plain, &annotated)),
        ];
        for (at, (predicate, _)) in cases.iter().enumerate() {
            for (other, (_, change)) in cases.iter().enumerate() {
                check(predicate, change, at == other);
            }
            check(predicate, &update(&plain, &plain), false);
        }
    }

    #[test]
    fn creations_deletions_and_deletion_requests_pass() {
        let plain = deployment(1);
        let mut deleting = plain.clone();
        deleting.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        let mut another = plain.clone();
        another.metadata.uid = Some("2".to_owned());
        let created = Change::Applied {
            old: None,
            new: Arc::new(plain.clone()),
            initial: true,
        };
        for predicate in [generation_changed(), labels_changed(), annotations_changed()] {
            check(&predicate, &created, true);
            check(&predicate, &Change::Deleted(Arc::new(plain.clone())), true);
            check(&predicate, &update(&plain, &deleting), true);
            check(&predicate, &update(&plain, &another), true);
        }
    }

    #[test]
    fn selector_matches_before_or_after_the_change() {
        let (plain, labelled) = (deployment(1), with(deployment(1), "a", true));
        let selector: Selector = [("a", "x")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into_iter()
            .collect();
        let matches = labels_match(selector);
        check(&matches, &update(&plain, &labelled), true);
        check(&matches, &update(&labelled, &plain), true);
        check(&matches, &update(&plain, &plain), false);
        check(&matches, &Change::Deleted(Arc::new(labelled)), true);
    }

    #[test]
    fn predicates_combine() {
        let (plain, labelled) = (deployment(1), with(deployment(1), "a", true));
        let change = update(&plain, &labelled);
        check(&labels_changed().and(generation_changed()), &change, false);
        check(&labels_changed().or(generation_changed()), &change, true);
        check(&labels_changed().not(), &change, false);
    }
}
