//! Selections, and which metadata to drop from the selected objects.

use std::fmt;

use kube::api::ListParams;
use kube::core::ObjectMeta;
use kube::runtime::watcher::{self, InitialListStrategy, ListSemantic};

use super::matching::Matcher;
use crate::object::LAST_APPLIED;
use crate::shards::{RangeSet, Scope};

/// Selects objects of a kind by label, field and namespace.
///
/// The API server evaluates selections, so other objects consume neither memory nor bandwidth.
/// Controllers with equal selections share a cache.
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
    /// Which objects to hold if the operator is sharded.
    scope: Scope,
}

impl Selection {
    /// Selects all objects in the manager's namespaces: those in `WATCH_NAMESPACE` if it's set, and
    /// all namespaces otherwise.
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects objects by a [label selector], e.g. `app=web,tier!=cache`.
    ///
    /// [label selector]: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Selects objects by a [field selector], e.g. `metadata.name=config`.
    ///
    /// The supported fields depend on the kind. Custom resources declare them with `selectable`.
    ///
    /// [field selector]: https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// Selects objects in the given namespaces instead of the manager's namespaces. Ignored for
    /// cluster-scoped kinds.
    ///
    /// An empty list doesn't mean all namespaces. Since an empty list or an empty name is most
    /// likely a mistake, the manager refuses to start with either.
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut namespaces: Vec<String> = namespaces.into_iter().map(Into::into).collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        self.namespaces = Some(namespaces);
        self
    }

    pub(crate) fn in_scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Narrows the selection to the given ranges, as far as a label selector can express them.
    pub(super) fn in_ranges(&self, ranges: &RangeSet) -> Self {
        let mut selection = self.clone();
        if let Some(shard) = self.scope.label_selector(ranges) {
            let own = self.labels.as_deref().filter(|own| !own.trim().is_empty());
            selection.labels = Some(own.map_or(shard.clone(), |own| format!("{own},{shard}")));
        }
        selection
    }

    pub(crate) fn scope(&self) -> Scope {
        self.scope
    }

    pub(super) fn namespaces_or<'a>(&'a self, defaults: &'a [String]) -> &'a [String] {
        self.namespaces.as_deref().unwrap_or(defaults)
    }

    /// Rejects an empty list of namespaces and empty names. The error says how to fix this.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        match self.namespaces.as_deref() {
            Some([]) => Err("no namespace is selected; omit `.namespaces(…)` to select those of the manager"),
            Some(names) if names.iter().any(String::is_empty) => {
                Err("the name of a namespace is empty; omit `.namespaces(…)` to select those of the manager")
            }
            _ => Ok(()),
        }
    }

    pub(super) fn selectors(&self) -> (&str, &str) {
        (
            self.labels.as_deref().unwrap_or_default(),
            self.fields.as_deref().unwrap_or_default(),
        )
    }

    pub(crate) fn can_lose_objects(&self) -> bool {
        Matcher::of(self).can_lose_objects()
    }

    /// Returns parameters that list the selected objects which also match the field selector
    /// `field`.
    pub(crate) fn list_params(&self, field: &str) -> ListParams {
        let fields = match &self.fields {
            Some(fields) => format!("{fields},{field}"),
            None => field.to_owned(),
        };
        let mut list = ListParams::default().fields(&fields);
        list.label_selector.clone_from(&self.labels);
        list
    }

    pub(super) fn watcher_config(&self, lists: &ListOptions) -> watcher::Config {
        let mut config = watcher::Config {
            page_size: lists.page_size,
            list_semantic: lists.semantic.clone(),
            initial_list_strategy: lists.strategy.clone(),
            ..watcher::Config::default()
        };
        config.label_selector.clone_from(&self.labels);
        config.field_selector.clone_from(&self.fields);
        config
    }
}

impl fmt::Display for Selection {
    /// Formats the selectors and namespaces that are set, e.g. `labels app=web; namespaces a,b`.
    /// The result is empty if all objects are selected.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.labels.as_ref().map(|labels| format!("labels {labels}")),
            self.fields.as_ref().map(|fields| format!("fields {fields}")),
            self.namespaces
                .as_ref()
                .map(|names| format!("namespaces {}", names.join(","))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(&parts.join("; "))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListOptions {
    /// Number of objects per page. `None` disables paging.
    pub(crate) page_size: Option<u32>,
    pub(crate) semantic: ListSemantic,
    pub(crate) strategy: InitialListStrategy,
}

impl Default for ListOptions {
    /// Same defaults as kube.
    fn default() -> Self {
        let config = watcher::Config::default();
        Self {
            page_size: config.page_size,
            semantic: config.list_semantic,
            strategy: config.initial_list_strategy,
        }
    }
}

/// Which parts of the metadata to drop before storing an object.
///
/// Both parts are often larger than the rest of the object, and neither is needed to apply or patch
/// it. Replacing is different: a controller must not replace an object with a trimmed one, since
/// that would delete these parts from the cluster.
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
        // serde allocates capacity for at least four elements, but usually there's only one owner,
        // and owner references are large.
        if let Some(owners) = &mut meta.owner_references {
            owners.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_dropped_only_if_enabled() {
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
    fn namespaces_must_be_named() {
        let check = |names: &[&str], is_valid: bool| {
            let selection = Selection::all().namespaces(names.iter().copied());
            assert_eq!(selection.check().is_ok(), is_valid, "{names:?}");
        };
        check(&["a", "b"], true);
        check(&[], false);
        check(&["a", ""], false);
        assert_eq!(Selection::all().check(), Ok(()));
    }

    #[test]
    fn selection_display_lists_its_parts() {
        assert_eq!(Selection::all().to_string(), "");
        let both = Selection::all().labels("app=web").namespaces(["b", "a"]);
        assert_eq!(both.to_string(), "labels app=web; namespaces a,b");
        assert_eq!(Selection::all().fields("a=b").to_string(), "fields a=b");
    }

    #[test]
    fn order_of_namespaces_does_not_matter() {
        let selected = Selection::all().namespaces(["b", "a", "b"]);
        assert_eq!(selected, Selection::all().namespaces(["a", "b"]));
        assert_eq!(selected.namespaces_or(&["c".to_owned()]), ["a", "b"]);
        assert_eq!(Selection::all().namespaces_or(&["c".to_owned()]), ["c"]);
    }
}
