//! Objects of kinds without a definition, which may be misspelled.

use rbuilder_diagnostic::suggest::find_misspelled;
use rbuilder_generator::Diagnostic;

use super::objects::{Judges, Object};

/// A field of an object's stanza that is misspelled.
pub(in crate::commands) struct Misspelled {
    /// `apiVersion` or `kind`.
    pub(in crate::commands) field: &'static str,
    /// What it should be.
    pub(in crate::commands) right: String,
}

impl Misspelled {
    /// Returns help that proposes the right text.
    pub(in crate::commands) fn help(&self) -> String {
        format!("did you mean `{}`?", self.right)
    }

    /// Returns whether a definition is for the corrected object, and not only a kind of Kubernetes.
    pub(in crate::commands) fn is_defined(&self, object: &Object, judges: &Judges) -> bool {
        match self.field {
            "kind" => judges.has(object.api_version(), &self.right),
            _ => judges.has(&self.right, object.kind()),
        }
    }
}

/// Finds what is misspelled in the stanza of an object that no definition is for: the kind, the
/// version, or the group.
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
    // Another number is another version.
    let numbers = |version: &str| -> Vec<String> {
        let parts = version.split(|letter: char| !letter.is_ascii_digit());
        parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let mut versions = judges.versions(object);
    versions.retain(|other| numbers(other) == numbers(version));
    if let Some(version) = find_misspelled(version, versions.iter().copied()) {
        let right = match group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        return Some(Misspelled {
            field: "apiVersion",
            right,
        });
    }
    let groups = judges.groups_with(version, object.kind());
    let group = find_misspelled(group, groups.iter().map(String::as_str))?;
    Some(Misspelled {
        field: "apiVersion",
        right: format!("{group}/{version}"),
    })
}

/// Reports a kind or a version that does not exist in a group of which a definition is known, and
/// warns of a misspelled group. Objects of other kinds are not validated.
pub(in crate::commands) fn describe_unknown_kind(object: &Object, judges: &Judges) -> Vec<Diagnostic> {
    let versions = judges.versions(object);
    let misspelled = find_misspelled_stanza(object, judges);
    let message = format!(
        "no matches for kind \"{}\" in version \"{}\"",
        object.kind(),
        object.api_version()
    );
    // A kind without a schema.
    if versions.contains(&object.group_version().1) {
        return Vec::new();
    }
    let said = match (&misspelled, versions.is_empty()) {
        (None, true) => return Vec::new(),
        (Some(Misspelled { field: "kind", .. }), _) => Diagnostic::error(object.place("kind"), message),
        (_, false) => Diagnostic::error(object.place("apiVersion"), message),
        // The group may belong to somebody else.
        (Some(_), true) => Diagnostic::warning(object.place("apiVersion"), message),
    };
    let help = match misspelled {
        Some(misspelled) => misspelled.help(),
        None => format!("the kind has the versions: {}", versions.join(", ")),
    };
    vec![said.help(help)]
}
