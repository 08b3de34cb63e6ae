//! Derives settings for the locations of CRDs: a directory and a file name pattern that cover most
//! of them, and individual files for the rest.

use std::collections::BTreeMap;

use crate::commands::manifests::{CrdPlace, DEFAULT_FILE};
use crate::paths::folder_of;

pub(super) struct Placed<'a> {
    pub(super) group: &'a str,
    pub(super) plural: &'a str,
    pub(super) path: Option<&'a str>,
    /// Whether the file is not a template, i.e. other CRDs may go to the same directory.
    pub(super) is_plain: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Placement {
    pub(super) folder: Option<String>,
    pub(super) file: Option<String>,
    pub(super) files: BTreeMap<String, String>,
}

const DEFAULT_FOLDER: &str = "config/crd/bases";

const PATTERNS: [&str; 14] = [
    DEFAULT_FILE,
    "{plural}.{group}.yaml",
    "{plural}.yaml",
    "{group}_{plural}.yml",
    "{plural}.{group}.yml",
    "{plural}.yml",
    "{group}.{plural}.yaml",
    "crd-{plural}.yaml",
    "{plural}-crd.yaml",
    "{plural}.crd.yaml",
    "{plural}_crd.yaml",
    "crd_{plural}.yaml",
    "{plural}.{group}.crd.yaml",
    "{group}_{plural}_crd.yaml",
];

/// Finds missing settings, i.e. files of CRDs that would otherwise be written elsewhere.
pub(super) fn add_to_settings(crds: &[Placed<'_>], place: &CrdPlace) -> Placement {
    let files = crds.iter().filter_map(|crd| Some((crd, crd.path?)));
    let elsewhere = files.filter(|(crd, path)| place.path(crd.group, crd.plural).as_deref() != Some(*path));
    Placement {
        files: elsewhere
            .map(|(crd, path)| (name_of(crd), path.to_owned()))
            .collect(),
        ..Placement::default()
    }
}

/// Finds the directory and pattern that match most files. A pattern without `{plural}` names a
/// single file with several CRDs.
pub(super) fn find_placement(crds: &[Placed<'_>]) -> Placement {
    let files: Vec<(&Placed<'_>, &str)> = crds.iter().filter_map(|crd| Some((crd, crd.path?))).collect();
    let plain = || files.iter().filter(|(crd, _)| crd.is_plain);
    let fits = |folder: &str, pattern: &str| {
        let matching = plain().filter(|(crd, path)| *path == file(folder, pattern, crd));
        matching.count()
    };
    let mut best: Option<(usize, &str, &str)> = None;
    for (_, path) in plain().filter(|(_, path)| !folder_of(path).is_empty()) {
        let (folder, name) = (folder_of(path), name_in_folder(path));
        let is_shared = plain().filter(|(_, other)| other == path).count() > 1;
        for pattern in PATTERNS.into_iter().chain(is_shared.then_some(name)) {
            let count = fits(folder, pattern);
            if best.is_none_or(|(most, ..)| count > most) {
                best = Some((count, folder, pattern));
            }
        }
    }
    let (folder, pattern) = best.map_or((DEFAULT_FOLDER, DEFAULT_FILE), |(_, folder, pattern)| {
        (folder, pattern)
    });
    let others = files
        .iter()
        .filter(|(crd, path)| *path != file(folder, pattern, crd));
    Placement {
        folder: (folder != DEFAULT_FOLDER).then(|| folder.to_owned()),
        file: (pattern != DEFAULT_FILE).then(|| pattern.to_owned()),
        files: others
            .map(|(crd, path)| (name_of(crd), (*path).to_owned()))
            .collect(),
    }
}

fn name_of(crd: &Placed<'_>) -> String {
    format!("{}.{}", crd.plural, crd.group)
}

fn name_in_folder(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn file(folder: &str, pattern: &str, crd: &Placed<'_>) -> String {
    let name = pattern
        .replace("{group}", crd.group)
        .replace("{plural}", crd.plural);
    format!("{folder}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        crds: &[(&str, Option<&str>)],
        folder: Option<&str>,
        file: Option<&str>,
        files: &[(&str, &str)],
    ) {
        let placed: Vec<Placed<'_>> = crds
            .iter()
            .map(|(plural, path)| Placed {
                group: "x.io",
                plural,
                path: *path,
                is_plain: true,
            })
            .collect();
        let files = files
            .iter()
            .map(|(crd, path)| ((*crd).to_owned(), (*path).to_owned()))
            .collect();
        let expected = Placement {
            folder: folder.map(str::to_owned),
            file: file.map(str::to_owned),
            files,
        };
        assert_eq!(find_placement(&placed), expected);
    }

    #[test]
    fn most_common_folder_and_pattern_win() {
        check(&[("cups", None)], None, None, &[]);
        check(
            &[("cups", Some("config/crd/bases/x.io_cups.yaml"))],
            None,
            None,
            &[],
        );
        check(
            &[
                ("cups", Some("charts/a/crds/cups.yaml")),
                ("pots", Some("charts/a/crds/pots.yaml")),
                ("cans", Some("deploy/crd.yaml")),
                ("jars", None),
            ],
            Some("charts/a/crds"),
            Some("{plural}.yaml"),
            &[("cans.x.io", "deploy/crd.yaml")],
        );
        check(
            &[("cups", Some("yaml/crd.yaml"))],
            Some("yaml"),
            None,
            &[("cups.x.io", "yaml/crd.yaml")],
        );
        check(
            &[
                ("cups", Some("yaml/crd.yaml")),
                ("pots", Some("yaml/crd.yaml")),
                ("cans", Some("yaml/cans.yaml")),
                ("jars", None),
            ],
            Some("yaml"),
            Some("crd.yaml"),
            &[("cans.x.io", "yaml/cans.yaml")],
        );
        check(
            &[("cups", Some("crd.yaml")), ("pots", Some("crd.yaml"))],
            None,
            None,
            &[("cups.x.io", "crd.yaml"), ("pots.x.io", "crd.yaml")],
        );
        check(
            &[("cups", Some("crd.yaml"))],
            None,
            None,
            &[("cups.x.io", "crd.yaml")],
        );
    }
}
