//! The CRDs that a repository has committed, wherever they are and whatever their files are called.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;

use super::template::{is_template, strip_template};
use crate::tree::Tree;
use crate::yaml_stream::{is_yaml, split_documents};

/// A CRD in a file of the repository.
#[derive(Debug)]
pub(super) struct CommittedCrd {
    pub(super) path: String,
    /// The kind and its group, if the CRD could be read.
    kind: Option<(String, String)>,
    /// The other documents in the file.
    pub(super) others: usize,
    /// True if Helm fills in parts of the file.
    pub(super) is_template: bool,
    /// True if it is an item of a `List`.
    is_listed: bool,
}

impl CommittedCrd {
    /// Returns true if the CRD could be read, and is that of a kind.
    pub(super) fn is_of(&self, group: &str, kind: &str) -> bool {
        let known = self.kind.as_ref();
        known.is_some_and(|(its_group, its_kind)| its_group == group && its_kind == kind)
    }

    /// Reads the CRD with a name from the file; nothing if that is not valid.
    pub(super) fn read_crd(&self, tree: &Tree, name: &str) -> Option<Value> {
        let text = tree.read(&self.path).ok()??;
        let (objects, _) = read_objects(&text);
        let mut crds = objects.into_iter().map(|(object, _)| object);
        crds.find(|object| crd_name(object).as_deref() == Some(name))
    }

    /// Returns true if a generated CRD can take the place of the whole file.
    pub(super) fn is_replaceable(&self) -> bool {
        self.others == 0 && !self.is_template && !self.is_listed && self.kind.is_some() && is_yaml(&self.path)
    }

    /// Returns the reason why rbuilder cannot write the file; `None` if it can.
    pub(super) fn obstacle(&self) -> Option<String> {
        if self.is_template {
            Some("it contains template expressions".to_owned())
        } else if self.kind.is_none() {
            Some("it is not valid YAML".to_owned())
        } else if self.others > 0 {
            Some(match self.others {
                1 => "it contains another object".to_owned(),
                others => format!("it contains {others} other objects"),
            })
        } else if self.is_listed {
            Some("it is in a list".to_owned())
        } else if !self.is_replaceable() {
            Some("it is not a YAML file".to_owned())
        } else {
            None
        }
    }
}

/// The committed CRDs by name, such as `cups.example.com`.
pub(super) type CommittedCrds = BTreeMap<String, Vec<CommittedCrd>>;

/// Finds all committed CRDs. Several files with one CRD are in the order of [`Precedence`].
///
/// # Errors
/// Fails if a folder cannot be read. A file that cannot be read is passed over.
pub(super) fn find_committed(tree: &Tree) -> Result<CommittedCrds> {
    let mut found = CommittedCrds::new();
    for path in tree.find_yaml()? {
        let Ok(Some(text)) = tree.read(&path) else {
            continue;
        };
        if text.contains("CustomResourceDefinition") {
            for (name, crd) in read_file(&path, &text) {
                found.entry(name).or_default().push(crd);
            }
        }
    }
    for files in found.values_mut() {
        files.sort_by_cached_key(|file| (Precedence::of(file), file.path.clone()));
    }
    Ok(found)
}

/// The order of several files with one CRD: the first is compared, and written.
///
/// A copy in the documentation goes before a template of a chart: people apply it as it is, and it can be written. A copy for
/// tests goes after both, since it may be of another release on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    Shipped,
    Documented,
    ShippedUnwritable,
    DocumentedUnwritable,
    Tested,
    TestedUnwritable,
}

impl Precedence {
    fn of(file: &CommittedCrd) -> Precedence {
        const TESTS: [&str; 5] = ["test", "tests", "testdata", "e2e", "fixtures"];
        const DOCUMENTS: [&str; 3] = ["docs", "example", "examples"];
        let is_below = |folders: &[&str]| file.path.split('/').any(|folder| folders.contains(&folder));
        match (is_below(&TESTS), is_below(&DOCUMENTS), file.is_replaceable()) {
            (true, _, true) => Precedence::Tested,
            (true, _, false) => Precedence::TestedUnwritable,
            (_, true, true) => Precedence::Documented,
            (_, true, false) => Precedence::DocumentedUnwritable,
            (_, _, true) => Precedence::Shipped,
            (_, _, false) => Precedence::ShippedUnwritable,
        }
    }
}

/// Returns the CRDs of a file with their names.
fn read_file(path: &str, text: &str) -> Vec<(String, CommittedCrd)> {
    let (objects, broken) = read_objects(text);
    let count = objects.len() + broken.len();
    let committed = |kind: Option<(String, String)>, is_listed: bool| CommittedCrd {
        path: path.to_owned(),
        kind,
        others: count.saturating_sub(1),
        is_template: is_template(text),
        is_listed,
    };
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found: Vec<(String, CommittedCrd)> = Vec::new();
    for (object, is_listed) in &objects {
        if let Some(name) = crd_name(object) {
            let spec = &object["spec"];
            let kind = (word(&spec["group"]), word(&spec["names"]["kind"]));
            found.push((name, committed(Some(kind), *is_listed)));
        }
    }
    let named = broken.into_iter().flatten();
    found.extend(named.map(|name| (name, committed(None, false))));
    found
}

/// The objects of a file, each with whether it is an item of a `List`, and for each document that is not valid the name of
/// the CRD that it seems to be.
fn read_objects(text: &str) -> (Vec<(Value, bool)>, Vec<Option<String>>) {
    let text = if is_template(text) {
        Cow::Owned(strip_template(text))
    } else {
        Cow::Borrowed(text)
    };
    let mut objects = Vec::new();
    let mut broken = Vec::new();
    for (_, document) in split_documents(&text) {
        match crate::yaml_stream::parse::<Value>(document) {
            Ok(value) => add_objects(value, &mut objects),
            Err(_) => broken.push(find_name(document)),
        }
    }
    (objects, broken)
}

/// The name of an object that is a CRD.
fn crd_name(object: &Value) -> Option<String> {
    let spec = &object["spec"];
    let (plural, group) = (spec["names"]["plural"].as_str()?, spec["group"].as_str()?);
    (object["kind"] == "CustomResourceDefinition").then(|| format!("{plural}.{group}"))
}

/// Adds an object, or those of a `List`.
fn add_objects(value: Value, objects: &mut Vec<(Value, bool)>) {
    match value {
        Value::Null => {}
        Value::Object(mut map) if map.get("kind").is_some_and(|kind| kind == "List") => {
            if let Some(Value::Array(items)) = map.remove("items") {
                objects.extend(items.into_iter().map(|item| (item, true)));
            }
        }
        value => objects.push((value, false)),
    }
}

/// The name of a CRD in text that is not YAML: from the first `plural:` and `group:`.
fn find_name(text: &str) -> Option<String> {
    if !text.contains("kind: CustomResourceDefinition") {
        return None;
    }
    let value_of = |key: &str| {
        let mut lines = text.lines().map(str::trim);
        let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        let value = value.trim().trim_matches(['"', '\'']);
        (!value.is_empty()).then_some(value)
    };
    Some(format!("{}.{}", value_of("plural")?, value_of("group")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(plural: &str) -> String {
        format!(
            "kind: CustomResourceDefinition\nmetadata:\n  name: {plural}.x.io\nspec:\n  group: x.io\n  names:\n    plural: {plural}\n"
        )
    }

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[(&str, Option<&str>)]) {
        let found = read_file(path, text);
        let found: Vec<(&str, Option<String>)> = found
            .iter()
            .map(|(name, crd)| (name.as_str(), crd.obstacle()))
            .collect();
        let found: Vec<(&str, Option<&str>)> = found
            .iter()
            .map(|(name, obstacle)| (*name, obstacle.as_deref()))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn crds_are_found_whatever_is_around_them() {
        let (cups, pots) = (crd("cups"), crd("pots"));
        check("a.yaml", &format!("# Made.\n---\n{cups}"), &[("cups.x.io", None)]);
        check("a.yaml", "kind: Role\n", &[]);
        check(
            "a.yaml",
            &format!("{cups}---\n{pots}---\nkind: Role\n"),
            &[
                ("cups.x.io", Some("it contains 2 other objects")),
                ("pots.x.io", Some("it contains 2 other objects")),
            ],
        );
        check(
            "a.json",
            "{\"kind\": \"CustomResourceDefinition\", \"spec\": {\"group\": \"x.io\", \"names\": {\"plural\": \"cups\"}}}",
            &[("cups.x.io", Some("it is not a YAML file"))],
        );
        let items = format!("kind: List\nitems:\n- {}", cups.trim_end().replace('\n', "\n  "));
        check("a.yaml", &items, &[("cups.x.io", Some("it is in a list"))]);
        check(
            "a.yaml",
            &format!("{{{{- if .Values.crds }}}}\n{cups}{{{{- end }}}}\n"),
            &[("cups.x.io", Some("it contains template expressions"))],
        );
        check(
            "a.yaml",
            &format!("{cups}  broken: [\n---\n{pots}"),
            &[
                ("pots.x.io", Some("it contains another object")),
                ("cups.x.io", Some("it is not valid YAML")),
            ],
        );
    }
}
