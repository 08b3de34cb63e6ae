//! Local evaluation of selectors. Matches the API server's semantics, but only supports fields in
//! an object's metadata.

use kube::core::ObjectMeta;
use rbuilder_kubernetes::selector::{FieldRequirement, FieldSelector, LabelSelector};

use super::Selection;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selects {
    Yes,
    No,
    /// Depends on a field that we can't evaluate, e.g. `status.phase`.
    Unknown,
}

#[derive(Debug)]
pub(super) struct Matcher {
    /// `None` if the API server would reject the selector.
    labels: Option<LabelSelector>,
    fields: Option<FieldSelector>,
}

impl Matcher {
    pub(super) fn of(selection: &Selection) -> Self {
        let (labels, fields) = selection.selectors();
        Self {
            labels: LabelSelector::parse(labels).ok(),
            fields: FieldSelector::parse(fields).ok(),
        }
    }

    /// Evaluates the label and field selectors for the given metadata. Namespaces are ignored,
    /// because the watches are already restricted to them.
    pub(super) fn selects(&self, meta: &ObjectMeta) -> Selects {
        let label = |key: &str| Some(meta.labels.as_ref()?.get(key)?.as_str());
        let labels = self.labels.as_ref().map(|labels| labels.matches(label));
        let Some(fields) = &self.fields else {
            return Selects::Unknown;
        };
        let fields = fields.requirements.iter().map(|field| holds(field, meta));
        fields
            .chain([labels])
            .fold(Selects::Yes, |before, matched| match (before, matched) {
                (Selects::No, _) | (_, Some(false)) => Selects::No,
                (before, Some(true)) => before,
                (_, None) => Selects::Unknown,
            })
    }

    /// Returns `true` if an update can make an object leave the selection.
    pub(super) fn can_lose_objects(&self) -> bool {
        // Names and namespaces are immutable; any other field may change.
        let is_fixed = |field: &FieldRequirement| holds(field, &ObjectMeta::default()).is_some();
        let are_fixed = |fields: &FieldSelector| fields.requirements.iter().all(is_fixed);
        !self.labels.as_ref().is_some_and(LabelSelector::is_empty)
            || !self.fields.as_ref().is_some_and(are_fixed)
    }
}

/// Returns `None` if we can't tell from the metadata.
fn holds(requirement: &FieldRequirement, meta: &ObjectMeta) -> Option<bool> {
    let found = match requirement.field.as_str() {
        "metadata.name" => meta.name.as_deref(),
        "metadata.namespace" => meta.namespace.as_deref(),
        _ => return None,
    };
    Some(requirement.holds(found.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(labels: &[(&str, &str)]) -> ObjectMeta {
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        ObjectMeta {
            name: Some("web".to_owned()),
            namespace: Some("shop".to_owned()),
            labels: Some(labels.collect()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn label_selectors_match_like_in_the_api_server() {
        let red = object(&[("team", "red"), ("app", "web")]);
        for (selector, expected) in [
            ("", Selects::Yes),
            ("team=red", Selects::Yes),
            ("team==red, app = web", Selects::Yes),
            ("team=blue", Selects::No),
            ("team!=red", Selects::No),
            ("tier!=red", Selects::Yes),
            ("team", Selects::Yes),
            ("!team", Selects::No),
            ("! tier", Selects::Yes),
            ("team in (blue, red),app", Selects::Yes),
            ("team in (blue,green)", Selects::No),
            ("team notin (blue,green)", Selects::Yes),
            ("tier notin (blue)", Selects::Yes),
            ("team=", Selects::No),
            ("size>3", Selects::No),
            ("size > 3,team=blue", Selects::No),
            ("team within (red)", Selects::Unknown),
            ("team in (red", Selects::Unknown),
        ] {
            let matcher = Matcher::of(&Selection::all().labels(selector));
            assert_eq!(matcher.selects(&red), expected, "{selector}");
        }
        let matcher = Matcher::of(&Selection::all().labels("team=red"));
        assert_eq!(matcher.selects(&ObjectMeta::default()), Selects::No);
    }

    #[test]
    fn only_metadata_fields_are_evaluated() {
        for (selector, expected) in [
            ("metadata.name=web", Selects::Yes),
            ("metadata.name!=web", Selects::No),
            ("metadata.namespace==shop,metadata.name=web", Selects::Yes),
            ("status.phase=Running", Selects::Unknown),
            ("status.phase=Running,metadata.name=other", Selects::No),
            ("metadata.name=other,status.phase=Running", Selects::No),
            ("metadata.name=a\\,b", Selects::No),
            ("metadata.name", Selects::Unknown),
        ] {
            let matcher = Matcher::of(&Selection::all().fields(selector));
            assert_eq!(matcher.selects(&object(&[])), expected, "{selector}");
        }
        let both = Selection::all().fields("status.phase=Running").labels("team=red");
        assert_eq!(Matcher::of(&both).selects(&object(&[])), Selects::No);
    }

    #[test]
    fn selectors_on_name_and_namespace_lose_no_objects() {
        let check = |selection: Selection, expected: bool| {
            assert_eq!(
                Matcher::of(&selection).can_lose_objects(),
                expected,
                "{selection}"
            );
        };
        check(Selection::all(), false);
        check(Selection::all().namespaces(["a"]), false);
        check(Selection::all().fields("metadata.name=web"), false);
        check(Selection::all().fields("spec.size=1"), true);
        check(Selection::all().labels("team=red"), true);
        check(Selection::all().labels("size>3"), true);
    }
}
