//! Local evaluation of selectors. Matches the API server's semantics, but only supports fields in
//! an object's metadata.

use kube::core::{Expression, ObjectMeta, Selector, SelectorExt};

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
    /// `None` if we can't parse the label selector, so only the API server can evaluate it.
    labels: Option<Selector>,
    fields: Vec<FieldRequirement>,
}

#[derive(Debug)]
struct FieldRequirement {
    field: Field,
    value: String,
    /// `true` for `=` and `==`, `false` for `!=`.
    equal: bool,
}

#[derive(Debug)]
enum Field {
    Name,
    Namespace,
    Other,
}

impl Matcher {
    pub(super) fn of(selection: &Selection) -> Self {
        let (labels, fields) = selection.selectors();
        let fields = fields.split(',').map(str::trim).filter(|term| !term.is_empty());
        Self {
            labels: parse_labels(labels),
            fields: fields.map(FieldRequirement::parse).collect(),
        }
    }

    /// Evaluates the label and field selectors for the given metadata. Namespaces are ignored,
    /// because the watches are already restricted to them.
    pub(super) fn selects(&self, meta: &ObjectMeta) -> Selects {
        let labels = self.labels.as_ref().map(|labels| match &meta.labels {
            Some(found) => labels.matches(found),
            None => labels.matches(&std::collections::BTreeMap::new()),
        });
        let fields = self.fields.iter().map(|field| field.matches(meta));
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
        let is_fixed = |field: &FieldRequirement| !matches!(field.field, Field::Other);
        !self.labels.as_ref().is_some_and(Selector::selects_all) || !self.fields.iter().all(is_fixed)
    }
}

impl FieldRequirement {
    fn parse(term: &str) -> Self {
        let (field, value, equal) = match (term.split_once("!="), term.split_once("==")) {
            (Some((field, value)), _) => (field, value, false),
            (None, Some((field, value))) => (field, value, true),
            (None, None) => {
                let (field, value) = term.split_once('=').unwrap_or((term, ""));
                (field, value, true)
            }
        };
        let field = match field.trim() {
            "metadata.name" => Field::Name,
            "metadata.namespace" => Field::Namespace,
            _ => Field::Other,
        };
        let value = value.trim().to_owned();
        Self { field, value, equal }
    }

    /// Returns `None` if we can't tell from the metadata.
    fn matches(&self, meta: &ObjectMeta) -> Option<bool> {
        let found = match self.field {
            Field::Name => meta.name.as_deref(),
            Field::Namespace => meta.namespace.as_deref(),
            Field::Other => return None,
        };
        Some((found.unwrap_or_default() == self.value) == self.equal)
    }
}

/// Returns `None` if the selector is invalid or uses an operator that kube's [`Expression`] lacks
/// (e.g. `>`).
fn parse_labels(text: &str) -> Option<Selector> {
    // Don't split at commas in parentheses, as in `team in (red, blue)`.
    let mut depth = 0;
    let terms = text.split(|found: char| {
        depth += i32::from(found == '(') - i32::from(found == ')');
        found == ',' && depth == 0
    });
    let terms = terms.map(str::trim).filter(|term| !term.is_empty());
    terms.map(parse_label).collect()
}

fn parse_label(term: &str) -> Option<Expression> {
    if let Some((head, values)) = term.split_once('(') {
        let values = values.strip_suffix(')')?.split(',');
        let values = values.map(|value| value.trim().to_owned()).collect();
        let mut words = head.split_whitespace();
        let key = words.next()?.to_owned();
        return match (words.next(), words.next()) {
            (Some("in"), None) => Some(Expression::In(key, values)),
            (Some("notin"), None) => Some(Expression::NotIn(key, values)),
            _ => None,
        };
    }
    let word = |text: &str| {
        let text = text.trim();
        let is_word = !text.contains(|found: char| found.is_whitespace() || "!=<>()".contains(found));
        is_word.then(|| text.to_owned())
    };
    if let Some(absent) = term.strip_prefix('!') {
        return Some(Expression::DoesNotExist(word(absent)?));
    }
    if let Some((key, value)) = term.split_once("!=") {
        return Some(Expression::NotEqual(word(key)?, word(value)?));
    }
    match term.split_once("==").or_else(|| term.split_once('=')) {
        Some((key, value)) => Some(Expression::Equal(word(key)?, word(value)?)),
        None => Some(Expression::Exists(word(term)?)),
    }
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
            ("size>3", Selects::Unknown),
            ("size > 3,team=blue", Selects::Unknown),
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
