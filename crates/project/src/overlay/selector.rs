//! Selection of objects by patches and replacements.

use rbuilder_kubernetes::gvk;
use rbuilder_kubernetes::selector::LabelSelector;
use serde_json::Value;

/// Whether a selector selects an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matches {
    /// It selects the object.
    Yes,
    /// It doesn't.
    No,
    /// The selector has a form that isn't supported.
    Unknown,
}

/// What a patch or a replacement selects.
#[derive(Debug, Default)]
pub struct Selector<'v> {
    group: Option<&'v str>,
    version: Option<&'v str>,
    kind: Option<&'v str>,
    name: Option<&'v str>,
    namespace: Option<&'v str>,
    is_any_namespace: bool,
    labels: Option<&'v str>,
    annotations: Option<&'v str>,
    /// Whether the fields are regular expressions, and a missing namespace is any namespace.
    is_target: bool,
}

impl<'v> Selector<'v> {
    /// The selector in a kustomization.
    pub fn of_target(target: &'v Value) -> Selector<'v> {
        let text = |key: &str| target[key].as_str().filter(|text| !text.is_empty());
        Selector {
            group: text("group"),
            version: text("version"),
            kind: text("kind"),
            name: text("name"),
            namespace: text("namespace"),
            labels: text("labelSelector"),
            annotations: text("annotationSelector"),
            is_target: true,
            ..Selector::default()
        }
    }

    /// The object that a patch without a selector names.
    pub fn of_patch(patch: &'v Value) -> Selector<'v> {
        let api_version = patch["apiVersion"].as_str().map(gvk::split);
        Selector {
            group: api_version.map(|(group, _)| group),
            version: api_version.map(|(_, version)| version),
            kind: patch["kind"].as_str(),
            name: patch["metadata"]["name"].as_str(),
            namespace: patch["metadata"]["namespace"].as_str(),
            ..Selector::default()
        }
    }

    /// The same selector for objects of any namespace.
    #[must_use]
    pub fn in_any_namespace(self) -> Self {
        Selector {
            is_any_namespace: true,
            ..self
        }
    }

    /// The selected kind, unless it is an expression.
    pub fn kind(&self) -> Option<&'v str> {
        self.kind.filter(|kind| !self.is_target || is_plain(kind))
    }

    /// The selected name, unless it is an expression.
    pub fn name(&self) -> Option<&'v str> {
        self.name.filter(|name| !self.is_target || is_plain(name))
    }

    /// The selected namespace.
    pub fn namespace(&self) -> Option<&'v str> {
        self.namespace
    }

    /// Decides whether it selects an object.
    pub fn matches(&self, object: &Value) -> Matches {
        let metadata = &object["metadata"];
        let (group, version) = gvk::split(object["apiVersion"].as_str().unwrap_or_default());
        let namespace = metadata["namespace"].as_str();
        let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
        let mut parts = vec![
            self.is_text(self.kind, &text(&object["kind"])),
            self.is_text(self.name, &text(&metadata["name"])),
            self.is_text(self.group, group),
            self.is_text(self.version, version),
            has_labels(self.labels, &metadata["labels"]),
            has_labels(self.annotations, &metadata["annotations"]),
        ];
        parts.push(match self.is_target {
            _ if self.is_any_namespace => Matches::Yes,
            true => self.is_text(self.namespace, namespace_of(namespace)),
            false => to_matches(namespace_of(self.namespace) == namespace_of(namespace)),
        });
        all(parts)
    }

    fn is_text(&self, wanted: Option<&str>, found: &str) -> Matches {
        match wanted {
            None => Matches::Yes,
            Some(wanted) if !self.is_target => to_matches(wanted == found),
            Some(wanted) => matches_expression(wanted, found),
        }
    }
}

/// For kustomize, objects without a namespace are in `default`.
pub fn namespace_of(namespace: Option<&str>) -> &str {
    namespace.unwrap_or("default")
}

fn to_matches(is_match: bool) -> Matches {
    match is_match {
        true => Matches::Yes,
        false => Matches::No,
    }
}

fn all(parts: Vec<Matches>) -> Matches {
    if parts.contains(&Matches::No) {
        Matches::No
    } else if parts.contains(&Matches::Unknown) {
        Matches::Unknown
    } else {
        Matches::Yes
    }
}

fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

/// Whether a text matches an expression as a whole. Supports alternatives and `.*`.
fn matches_expression(expression: &str, text: &str) -> Matches {
    let mut parts = Vec::new();
    for alternative in expression.split('|') {
        parts.push(if is_plain(alternative) {
            to_matches(alternative == text)
        } else if alternative == ".*" {
            Matches::Yes
        } else if let Some(start) = alternative.strip_suffix(".*").filter(|start| is_plain(start)) {
            to_matches(text.starts_with(start))
        } else if let Some(end) = alternative.strip_prefix(".*").filter(|end| is_plain(end)) {
            to_matches(text.ends_with(end))
        } else {
            Matches::Unknown
        });
    }
    if parts.contains(&Matches::Yes) {
        Matches::Yes
    } else if parts.contains(&Matches::Unknown) {
        Matches::Unknown
    } else {
        Matches::No
    }
}

/// Whether a selector matches the labels or annotations of an object. kustomize rejects an invalid
/// one.
fn has_labels(selector: Option<&str>, labels: &Value) -> Matches {
    match selector.map(LabelSelector::parse) {
        None => Matches::Yes,
        Some(Ok(selector)) => to_matches(selector.matches_map(labels)),
        Some(Err(_)) => Matches::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn targets_select_by_expressions_and_labels() {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "till", "namespace": "system", "labels": { "a": "b" } },
        });
        for (target, expected) in [
            (json!({}), Matches::Yes),
            (json!({ "kind": "Deployment", "name": "till" }), Matches::Yes),
            (json!({ "kind": "Role|Deployment" }), Matches::Yes),
            (json!({ "name": "ti.*" }), Matches::Yes),
            (json!({ "name": "t" }), Matches::No),
            (json!({ "name": "[tT]ill" }), Matches::Unknown),
            (json!({ "group": "batch" }), Matches::No),
            (json!({ "group": "apps", "version": "v1" }), Matches::Yes),
            (json!({ "version": "v2" }), Matches::No),
            (json!({ "namespace": "other" }), Matches::No),
            (json!({ "labelSelector": "a=b,!c" }), Matches::Yes),
            (json!({ "labelSelector": "a!=b" }), Matches::No),
            (json!({ "labelSelector": "a in (b)" }), Matches::Yes),
            (json!({ "labelSelector": "a notin (b)" }), Matches::No),
            (json!({ "labelSelector": "a in b" }), Matches::Unknown),
            (json!({ "annotationSelector": "x" }), Matches::No),
        ] {
            assert_eq!(
                Selector::of_target(&target).matches(&object),
                expected,
                "{target}"
            );
        }
    }

    #[test]
    fn a_patch_names_one_object() {
        let object = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a", "namespace": "system" } });
        for (namespace, expected) in [("system", Matches::Yes), ("other", Matches::No)] {
            let mut patch = object.clone();
            patch["metadata"]["namespace"] = namespace.into();
            assert_eq!(Selector::of_patch(&patch).matches(&object), expected);
            assert_eq!(
                Selector::of_patch(&patch).in_any_namespace().matches(&object),
                Matches::Yes
            );
        }
    }
}
