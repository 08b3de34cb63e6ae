//! Which objects of a kind a cache holds, and what of them.

use kube::core::ObjectMeta;
use kube::runtime::watcher;

/// What `kubectl apply` (without `--server-side`) leaves on every object: the object once more.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A choice among the objects of a kind: by label, by field, by namespace.
///
/// The API server does the choosing; what is not chosen takes no memory and no bandwidth. Controllers that choose
/// alike share a cache.
///
/// ```
/// use rbuilder::Selection;
///
/// let ours = Selection::all().labels("app.kubernetes.io/managed-by=memcached-operator");
/// let running = Selection::all().fields("status.phase=Running").namespaces(["default"]);
/// assert_ne!(ours, running);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    labels: Option<String>,
    fields: Option<String>,
    namespaces: Option<Vec<String>>,
}

impl Selection {
    /// Every object, in the manager's namespaces: all of them, or those of `WATCH_NAMESPACE`.
    pub fn all() -> Self {
        Self::default()
    }

    /// Those with these labels, by a [label selector] such as `app=web,tier!=cache`.
    ///
    /// [label selector]: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Those with these values, by a [field selector] such as `metadata.name=config`. Which fields can be named
    /// depends on the kind; custom resources list theirs with `selectable`.
    ///
    /// [field selector]: https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// Those in these namespaces, in place of the manager's. Cluster-wide kinds are watched whole.
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut namespaces: Vec<String> = namespaces.into_iter().map(Into::into).collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        self.namespaces = Some(namespaces);
        self
    }

    /// The namespaces to watch: those chosen, or else these.
    pub(super) fn namespaces_or<'a>(&'a self, defaults: &'a [String]) -> &'a [String] {
        self.namespaces.as_deref().unwrap_or(defaults)
    }

    /// Whether objects are left out by what they say.
    pub(super) fn is_choosy(&self) -> bool {
        self.labels.is_some() || self.fields.is_some()
    }

    pub(super) fn watcher_config(&self) -> watcher::Config {
        let mut config = watcher::Config::default();
        config.label_selector.clone_from(&self.labels);
        config.field_selector.clone_from(&self.fields);
        config
    }
}

/// What a cache drops of each object's metadata.
///
/// Both parts are often larger than the rest of the object, and a controller that applies or patches needs
/// neither. One that replaces whole objects must not start from a cached one without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trim {
    pub(crate) managed_fields: bool,
    pub(crate) last_applied: bool,
}

impl Default for Trim {
    fn default() -> Self {
        Self {
            managed_fields: true,
            last_applied: true,
        }
    }
}

impl Trim {
    pub(super) fn apply(self, meta: &mut ObjectMeta) {
        if self.managed_fields {
            meta.managed_fields = None;
        }
        if self.last_applied
            && let Some(annotations) = &mut meta.annotations
        {
            annotations.remove(LAST_APPLIED);
        }
        // serde makes room for four of what is mostly one, and an owner reference is large.
        if let Some(owners) = &mut meta.owner_references {
            owners.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_can_be_chosen() {
        let full = ObjectMeta {
            managed_fields: Some(Vec::new()),
            annotations: Some(
                [(LAST_APPLIED, "{}"), ("a", "b")]
                    .map(|(k, v)| (k.into(), v.into()))
                    .into(),
            ),
            ..ObjectMeta::default()
        };
        let check = |managed_fields, last_applied, annotations: usize| {
            let mut meta = full.clone();
            let trim = Trim {
                managed_fields,
                last_applied,
            };
            trim.apply(&mut meta);
            assert_eq!(meta.managed_fields.is_none(), managed_fields);
            assert_eq!(meta.annotations.map(|kept| kept.len()), Some(annotations));
        };
        check(true, true, 1);
        check(false, true, 1);
        check(true, false, 2);
        check(false, false, 2);
    }

    #[test]
    fn namespaces_are_the_same_in_any_order() {
        let chosen = Selection::all().namespaces(["b", "a", "b"]);
        assert_eq!(chosen, Selection::all().namespaces(["a", "b"]));
        assert_eq!(chosen.namespaces_or(&["c".to_owned()]), ["a", "b"]);
        assert_eq!(Selection::all().namespaces_or(&["c".to_owned()]), ["c"]);
    }
}
