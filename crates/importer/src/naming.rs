//! Names of types. A type is named after the last key on its path, with only as many other keys as
//! needed to be unique in the file.
//!
//! For example, the field at `spec.solvers[].http01.ingress` gets the type `Ingress`. If another
//! type has the same last key, we add the nearest key that isn't on the other path, e.g.
//! `Http01Ingress`; failing that two keys, and failing that as many from the end of the path as
//! needed.
//!
//! A type used in several places is named after their most frequent key. A name only depends on the
//! schema of a single version, so adding another definition to the folder doesn't change it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::classes::{Class, Classes};

/// Names that would shadow others in the generated code.
const TAKEN: &[&str] = &[
    "BTreeMap",
    "Box",
    "Clone",
    "Copy",
    "CrdSchema",
    "CustomResource",
    "Debug",
    "Default",
    "Deserialize",
    "Drop",
    "Eq",
    "Err",
    "Fn",
    "From",
    "Into",
    "Iterator",
    "None",
    "Ok",
    "Option",
    "PartialEq",
    "Result",
    "Self",
    "Send",
    "Serialize",
    "Some",
    "String",
    "Sync",
    "ToString",
    "Vec",
];

/// Names all types of a version. Names in `taken` aren't available.
pub(crate) fn name_classes(classes: &mut Classes<'_>, taken: &[String]) {
    let mut given: BTreeSet<String> = TAKEN.iter().map(|name| (*name).to_owned()).collect();
    given.extend(taken.iter().cloned());
    let open: Vec<usize> = (0..classes.list.len())
        .filter(|id| !classes.list[*id].is_root)
        .collect();
    let paths: Vec<Vec<String>> = open.iter().map(|id| naming_path(&classes.list[*id])).collect();
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, path) in paths.iter().enumerate() {
        groups
            .entry(path.last().map_or("", String::as_str))
            .or_default()
            .push(at);
    }
    // Start with unique keys. Otherwise, a longer name might take one of these.
    let (single, several): (Vec<_>, Vec<_>) = groups.into_values().partition(|group| group.len() == 1);
    for group in single.into_iter().chain(several) {
        for at in &group {
            let others: Vec<&[String]> = group
                .iter()
                .filter(|other| *other != at)
                .map(|other| paths[*other].as_slice())
                .collect();
            let candidates = candidates(&paths[*at], &others);
            let name = candidates
                .into_iter()
                .find(|name| is_name(name) && !given.contains(name));
            // The key may be the name of the kind or its status.
            let last = paths[*at].last().map_or("", String::as_str);
            let mut name = name.unwrap_or_else(|| format!("{last}Value"));
            while given.contains(&name) {
                name.push_str("Alt");
            }
            given.insert(name.clone());
            classes.list[open[*at]].name = name;
        }
    }
}

/// Candidate names, best first: only the key, then the key with one or two others that distinguish
/// it from the rest of the group, then path suffixes.
fn candidates(path: &[String], others: &[&[String]]) -> Vec<String> {
    let Some((last, before)) = path.split_last() else {
        return Vec::new();
    };
    let mut names = Vec::new();
    if others.is_empty() {
        names.push(last.clone());
    }
    let tells = |keys: &[&String]| {
        !others
            .iter()
            .any(|other| keys.iter().all(|key| other.contains(key)))
    };
    let nearest: Vec<&String> = before.iter().rev().collect();
    names.extend(
        nearest
            .iter()
            .filter(|key| tells(&[key]))
            .map(|key| joined(&[key, last])),
    );
    for (at, near) in nearest.iter().enumerate() {
        let far = nearest.iter().skip(at + 1).filter(|far| tells(&[near, far]));
        names.extend(far.map(|far| joined(&[far, near, last])));
    }
    names.extend((2..=path.len()).map(|length| {
        let end: Vec<&String> = path[path.len() - length..].iter().collect();
        joined(&end)
    }));
    names
}

/// Joins keys to a name. A key that starts with the preceding ones replaces them.
fn joined(keys: &[&String]) -> String {
    keys.iter()
        .fold(String::new(), |name, key| match key.starts_with(name.as_str()) {
            true => (*key).clone(),
            false => name + key,
        })
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// The path after which a type is named: the first of the shortest paths with the most frequent
/// key.
fn naming_path(class: &Class) -> Vec<String> {
    let is_empty_struct = class.schema.properties.is_empty() && class.schema.enumeration.is_empty();
    if is_empty_struct && class.uses.len() > 1 {
        // An empty type: the name of one place would be misleading in the others.
        return vec!["Empty".into()];
    }
    let key = |at: usize| class.uses[at].path.last();
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for name in (0..class.uses.len()).filter_map(key) {
        *counts.entry(name).or_default() += 1;
    }
    let count = |at: usize| {
        key(at)
            .and_then(|key| counts.get(key))
            .copied()
            .unwrap_or_default()
    };
    let best = (0..class.uses.len()).min_by_key(|at| (Reverse(count(*at)), class.uses[*at].path.len(), *at));
    best.map(|at| class.uses[at].path.clone()).unwrap_or_default()
}
