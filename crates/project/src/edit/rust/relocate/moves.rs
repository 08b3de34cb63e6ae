//! The moves of a library's modules.

use std::collections::{BTreeMap, BTreeSet};

/// Moves of a library's modules, by module path.
#[derive(Clone, Debug, Default)]
pub struct ModuleMoves {
    /// New paths by old path. `None` for a module that only contained moved modules and thus ceases
    /// to exist.
    moves: BTreeMap<Vec<String>, Option<Vec<String>>>,
}

/// What happens to a file in `src/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFate {
    /// The file stays.
    Stays,
    /// The file moves to this path.
    Moves(String),
    /// The file belongs to a module that ceases to exist.
    Gone,
}

impl ModuleMoves {
    /// Moves a module together with its content.
    pub fn insert(&mut self, from: &str, to: &str) {
        let parts = |path: &str| -> Vec<String> { path.split("::").map(str::to_owned).collect() };
        if from != to {
            self.moves.insert(parts(from), Some(parts(to)));
        }
    }

    /// Records that a module ceases to exist, unless it moves itself. Its path may be taken by
    /// another module.
    pub fn insert_gone(&mut self, module: &[String]) {
        self.moves.entry(module.to_vec()).or_insert(None);
    }

    /// Iterates over pairs of old and new path.
    pub fn iter(&self) -> impl Iterator<Item = (&[String], &[String])> {
        let moves = self.moves.iter();
        moves.filter_map(|(from, to)| Some((from.as_slice(), to.as_deref()?)))
    }

    /// Iterates over the modules that cease to exist.
    pub fn gone(&self) -> impl Iterator<Item = &[String]> {
        let moves = self.moves.iter();
        moves
            .filter(|(_, to)| to.is_none())
            .map(|(from, _)| from.as_slice())
    }

    /// Path of a module after the moves, or `None` if the module ceases to exist.
    pub(super) fn target(&self, module: &[String]) -> Option<Vec<String>> {
        // A module moves along with its closest moved ancestor.
        for length in (0..=module.len()).rev() {
            if let Some(to) = self.moves.get(&module[..length]) {
                return to.as_ref().map(|to| [to, &module[length..]].concat());
            }
        }
        Some(module.to_vec())
    }

    pub(super) fn added(&self) -> BTreeMap<Vec<String>, BTreeSet<String>> {
        let mut added: BTreeMap<Vec<String>, BTreeSet<String>> = BTreeMap::new();
        for (_, to) in self.iter() {
            for length in 1..=to.len() {
                let (above, name) = (&to[..length - 1], &to[length - 1]);
                added.entry(above.to_vec()).or_default().insert(name.clone());
            }
        }
        added
    }

    /// What happens to a file in `src/`.
    pub fn file(&self, path: &str) -> FileFate {
        let Some(below) = path.strip_prefix("src/") else {
            return FileFate::Stays;
        };
        let mut parts: Vec<String> = below.split('/').map(str::to_owned).collect();
        let name = parts.pop().unwrap_or_default();
        let stem = name.strip_suffix(".rs").filter(|stem| *stem != "mod");
        let folders = parts.len();
        parts.extend(stem.map(str::to_owned));
        // Longest path first, so that the innermost move wins.
        for length in (1..=parts.len()).rev() {
            let Some(to) = self.moves.get(&parts[..length]) else {
                continue;
            };
            let Some(to) = to else { return FileFate::Gone };
            let to = to.join("/");
            return FileFate::Moves(match folders.checked_sub(length) {
                // The module's own file, e.g. `src/api/v1.rs`.
                None => format!("src/{to}.rs"),
                Some(_) => {
                    let rest: Vec<&str> = parts[length..folders].iter().map(String::as_str).collect();
                    let rest = rest.into_iter().chain([name.as_str()]);
                    format!("src/{to}/{}", rest.collect::<Vec<_>>().join("/"))
                }
            });
        }
        FileFate::Stays
    }
}
