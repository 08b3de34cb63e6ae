//! Objects of a kind without a definition, which may be misspelled.

use rbuilder_diagnostic::suggest::find_misspelled;
use rbuilder_generator::Diagnostic;
use rbuilder_kubernetes::gvk;
use serde_json::Map;

use super::objects::{Judges, Object};

pub(in crate::commands) struct Misspelled {
    pub(in crate::commands) field: &'static str,
    pub(in crate::commands) right: String,
}

impl Misspelled {
    pub(in crate::commands) fn help(&self) -> String {
        format!("did you mean `{}`?", self.right)
    }

    /// Whether there is a definition for the corrected object. Otherwise it is only known as a kind
    /// of Kubernetes.
    pub(in crate::commands) fn is_defined(&self, object: &Object, judges: &Judges) -> bool {
        match self.field {
            "kind" => judges.has(object.api_version(), &self.right),
            _ => judges.has(&self.right, object.kind()),
        }
    }
}

/// Finds out whether the kind, version or group of an object without a definition is misspelled.
pub(in crate::commands) fn find_misspelled_stanza(object: &Object, judges: &Judges) -> Option<Misspelled> {
    let (group, version) = object.group_version();
    if !judges.knows(object) {
        let kinds = judges.kinds_in(group, version);
        let kind = find_misspelled(object.kind(), kinds.iter().map(String::as_str));
        if let Some(kind) = kind {
            return Some(Misspelled {
                field: "kind",
                right: kind.to_owned(),
            });
        }
    }
    // Another number isn't a misspelling: `v1beta2` and `v1beta1` may both exist.
    let numbers = |version: &str| -> Vec<String> {
        let parts = version.split(|letter: char| !letter.is_ascii_digit());
        parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let mut versions = judges.versions(object);
    versions.retain(|other| numbers(other) == numbers(version));
    if let Some(version) = find_misspelled(version, versions.iter().copied()) {
        return Some(Misspelled {
            field: "apiVersion",
            right: gvk::api_version(group, version),
        });
    }
    let groups = judges.groups_with(version, object.kind());
    let group = find_misspelled(group, groups.iter().map(String::as_str))?;
    Some(Misspelled {
        field: "apiVersion",
        right: gvk::api_version(group, version),
    })
}

/// Reports a value without API version or kind, which kubectl refuses to apply.
pub(in crate::commands) fn describe_missing_type(object: &Object) -> Vec<Diagnostic> {
    let fields = [("apiVersion", object.api_version()), ("kind", object.kind())];
    let missing = fields.into_iter().filter(|(_, value)| value.is_empty());
    let describe = |(field, _): (&str, &str)| {
        let names = object.value.as_object().into_iter().flat_map(Map::keys);
        let other = names
            .map(String::as_str)
            .find(|name| name.eq_ignore_ascii_case(field));
        let help = match other.filter(|name| *name != field) {
            Some(other) => format!("write `{field}` instead of `{other}`"),
            None => "every object has `apiVersion` and `kind`, such as `v1` and `ConfigMap`".to_owned(),
        };
        Diagnostic::error(object.place(field), format!("{field}: Required value")).help(help)
    };
    missing.map(describe).collect()
}

/// Reports an unknown kind or version in a group with known definitions, and warns about a
/// misspelled group. Nothing can be said about other objects.
pub(in crate::commands) fn describe_unknown_kind(object: &Object, judges: &Judges) -> Vec<Diagnostic> {
    let versions = judges.versions(object);
    let misspelled = find_misspelled_stanza(object, judges);
    let message = format!(
        "no matches for kind \"{}\" in version \"{}\"",
        object.kind(),
        object.api_version()
    );
    // The kind is known, but has no schema.
    if versions.contains(&object.group_version().1) {
        return Vec::new();
    }
    // Lists are read item by item, and an empty one has none.
    let is_closed = judges.is_closed(object.group_version().0) && !object.kind().ends_with("List");
    let said = match (&misspelled, versions.is_empty()) {
        (None, true) if is_closed && !object.kind().is_empty() => {
            Diagnostic::error(object.place("kind"), message)
        }
        (None, true) => return Vec::new(),
        (Some(Misspelled { field: "kind", .. }), _) => Diagnostic::error(object.place("kind"), message),
        (_, false) => Diagnostic::error(object.place("apiVersion"), message),
        (Some(_), true) if is_closed => Diagnostic::error(object.place("apiVersion"), message),
        // Only warn: the group may belong to another project.
        (Some(_), true) => Diagnostic::warning(object.place("apiVersion"), message),
    };
    let help = match misspelled {
        Some(misspelled) => misspelled.help(),
        None if versions.is_empty() => {
            "Kubernetes has no such kind, and CRDs cannot add kinds to its groups".to_owned()
        }
        None => format!("the kind has the versions: {}", versions.join(", ")),
    };
    vec![said.help(help)]
}
