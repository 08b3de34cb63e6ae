//! Writes a type that occurs in several files only once, in a module `shared`.
//!
//! A type is shared if several files contain it with the same name and schema, and everything that
//! it refers to is shared as well. It goes to `shared.rs` in the deepest common folder of these
//! files. If two types there would have the same name, the one in more files wins, or else the
//! first; the other one stays in its files.
//!
//! Names are assigned earlier, and the files re-export shared types. So when another definition is
//! added to the folder, a type may move but keeps its old path.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::classes::{Body, Class, Classes};
use crate::interner::Interner;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedType {
    pub(crate) folder: String,
    pub(crate) first: (usize, usize),
    uses: Vec<(usize, usize)>,
}

/// Finds types shared by several files. `files` contains the folder of each file, and its types,
/// which must have names already.
pub(crate) fn find_shared(files: &[(&str, &Classes<'_>)]) -> Vec<SharedType> {
    let mut found: BTreeMap<usize, SharedType> = BTreeMap::new();
    let mut identities = Identities::default();
    for (file, (folder, classes)) in files.iter().enumerate() {
        let of_file = identities.of_file(classes);
        for (id, identity) in of_file.into_iter().enumerate() {
            if classes.list[id].is_root {
                continue;
            }
            let shared = found.entry(identity).or_insert_with(|| SharedType {
                folder: (*folder).to_owned(),
                first: (file, id),
                uses: Vec::new(),
            });
            shared.folder = common_folder(&shared.folder, folder).to_owned();
            shared.uses.push((file, id));
        }
    }
    found.retain(|_, shared| shared.uses.len() > 1);
    let name = |shared: &SharedType| files[shared.first.0].1.list[shared.first.1].name.as_str();
    let mut by_rank: Vec<(usize, &SharedType)> = found
        .iter()
        .map(|(identity, shared)| (*identity, shared))
        .collect();
    by_rank.sort_by_key(|(_, shared)| (Reverse(shared.uses.len()), shared.first));
    let mut taken = BTreeSet::new();
    let mut kept: BTreeSet<usize> = by_rank
        .into_iter()
        .filter(|(_, shared)| taken.insert((shared.folder.as_str(), name(shared))))
        .map(|(identity, _)| identity)
        .collect();
    // A shared type must only refer to shared types. Removing one may break others, so repeat.
    loop {
        let is_closed = |identity: &usize| identities.parts[*identity].iter().all(|part| kept.contains(part));
        let (closed, open): (BTreeSet<usize>, BTreeSet<usize>) = kept.iter().copied().partition(is_closed);
        kept = closed;
        if open.is_empty() {
            break;
        }
    }
    found.retain(|identity, _| kept.contains(identity));
    let mut shared: Vec<SharedType> = found.into_values().collect();
    shared.sort_by(|a, b| (&a.folder, name(a)).cmp(&(&b.folder, name(b))));
    shared
}

impl SharedType {
    pub(crate) fn uses(&self) -> &[(usize, usize)] {
        &self.uses
    }
}

fn common_folder<'a>(one: &'a str, other: &str) -> &'a str {
    let mut end = 0;
    for (step, other) in one.split('/').zip(other.split('/')) {
        if step != other {
            break;
        }
        end += step.len() + 1;
    }
    one.get(..end.saturating_sub(1)).unwrap_or(one)
}

/// Assigns the same number to types of the same name and schema that refer to the same types.
#[derive(Default)]
struct Identities {
    known: BTreeMap<(String, usize, Vec<usize>), usize>,
    schemas: Interner,
    /// Types that each type refers to, by number.
    parts: Vec<Vec<usize>>,
}

impl Identities {
    fn of_file(&mut self, classes: &Classes<'_>) -> Vec<usize> {
        let mut numbers = vec![None; classes.list.len()];
        for id in 0..classes.list.len() {
            self.number(classes, id, &mut numbers);
        }
        numbers.into_iter().flatten().collect()
    }

    fn number(&mut self, classes: &Classes<'_>, id: usize, numbers: &mut [Option<usize>]) -> usize {
        if let Some(number) = numbers[id] {
            return number;
        }
        let class = &classes.list[id];
        let mut parts = Vec::new();
        for part in mentioned(class) {
            parts.push(self.number(classes, part, numbers));
        }
        let schema = self.schemas.number(&class.schema);
        let next = self.known.len();
        let number = *self
            .known
            .entry((class.name.clone(), schema, parts.clone()))
            .or_insert(next);
        if number == next {
            self.parts.push(parts);
        }
        numbers[id] = Some(number);
        number
    }
}

pub(crate) fn mentioned(class: &Class) -> Vec<usize> {
    let mut parts = Vec::new();
    if let Body::Struct(members) = &class.body {
        for member in members {
            member.ty.each_class(&mut |id| parts.push(id));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_deepest_common_folder() {
        for (one, other, expected) in [
            ("v1", "v1", "v1"),
            ("v1", "v2", ""),
            ("shop/v1", "shop/v2", "shop"),
            ("shop/v1", "shops/v1", ""),
            ("shop", "shop/v1", "shop"),
            ("", "v1", ""),
        ] {
            assert_eq!(common_folder(one, other), expected, "{one} {other}");
        }
    }
}
