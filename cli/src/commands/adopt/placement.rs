//! The places of the CRDs of a repository: the folder and the pattern of most, and the files of the others.

use std::collections::BTreeMap;

use crate::commands::manifests::DEFAULT_FILE;

/// A CRD that rbuilder is to write, and the file that it has today.
pub(super) struct Placed<'a> {
    pub(super) group: &'a str,
    pub(super) plural: &'a str,
    /// Nothing for a CRD without a file.
    pub(super) path: Option<&'a str>,
}

/// The settings that lead to the files that there are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Placement {
    /// The folder; nothing for the default one.
    pub(super) folder: Option<String>,
    /// The pattern; nothing for the default one.
    pub(super) file: Option<String>,
    /// The files of the others, by the name of the CRD.
    pub(super) files: BTreeMap<String, String>,
}

/// The folder without a setting.
const DEFAULT_FOLDER: &str = "config/crd/bases";

/// Patterns of file names, the likelier first.
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

/// Finds the folder and the pattern that fit the most files.
pub(super) fn find_placement(crds: &[Placed<'_>]) -> Placement {
    let files: Vec<(&Placed<'_>, &str)> = crds.iter().filter_map(|crd| Some((crd, crd.path?))).collect();
    let fits = |folder: &str, pattern: &str| {
        let matching = files
            .iter()
            .filter(|(crd, path)| *path == file(folder, pattern, crd));
        matching.count()
    };
    let mut best: Option<(usize, &str, &str)> = None;
    let folders = files.iter().map(|(_, path)| folder_of(path));
    for folder in folders.filter(|folder| !folder.is_empty()) {
        for pattern in PATTERNS {
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
            .map(|(crd, path)| (format!("{}.{}", crd.plural, crd.group), (*path).to_owned()))
            .collect(),
    }
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
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
    fn the_folder_and_the_pattern_of_most() {
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
            &[("cups", Some("crd.yaml"))],
            None,
            None,
            &[("cups.x.io", "crd.yaml")],
        );
    }
}
