//! Compares rbuilder's manifests with those of controller-gen for the same APIs in Rust and Go.
//!
//! The APIs are in `testdata/oracle/go` and `testdata/oracle/rust`. `cargo xtask oracle` records
//! the output of controller-gen in `testdata/oracle/recorded`. If we differ on purpose,
//! [`DIFFERENCES`](differences::DIFFERENCES) says so. Any other difference fails the test, and so
//! does a row that isn't used.

// The test reads its cases from disk.
#![allow(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rbuilder_generator::{Options, Severity, SourceSet, generate};
use serde_json::Value;

#[path = "oracle/compare.rs"]
mod compare;
#[path = "oracle/differences.rs"]
mod differences;

use compare::{Found, compare};
use differences::{ABSENT, ANY, DIFFERENCES, Row};

/// A run of both programs.
struct Run {
    /// The directory in `recorded/`. `cargo xtask oracle` knows the options of controller-gen for
    /// the same name.
    name: &'static str,
    /// The directory below `config` with the files of this run.
    folder: &'static str,
    /// Takes the name of one of our objects.
    objects: fn(&str) -> bool,
    options: fn() -> Options,
}

const RUNS: &[Run] = &[
    Run {
        name: "crd",
        folder: "crd/bases",
        objects: |_| true,
        options: || Options {
            version: Some("(test)".into()),
            ..Options::default()
        },
    },
    Run {
        name: "crd_short",
        folder: "crd/bases",
        objects: |name| name == "docs",
        options: || Options {
            max_description_length: Some(50),
            ..Options::default()
        },
    },
    Run {
        name: "crd_metadata",
        folder: "crd/bases",
        objects: |name| name == "kubernetes",
        options: || Options {
            embedded_object_meta: true,
            ..Options::default()
        },
    },
    Run {
        name: "rbac",
        folder: "rbac",
        objects: |_| true,
        options: Options::default,
    },
    Run {
        name: "webhook",
        folder: "webhook",
        objects: |name| !is_named(name),
        options: Options::default,
    },
    Run {
        name: "webhook_named",
        folder: "webhook",
        objects: is_named,
        options: Options::default,
    },
];

/// These webhook configurations are from the package with explicit names. controller-gen can only
/// use one name per run.
fn is_named(name: &str) -> bool {
    name.ends_with(" foo") || name.ends_with(" bar")
}

#[test]
fn output_matches_controller_gen() {
    let mut unexpected = Vec::new();
    let mut used = BTreeSet::<&Row>::new();
    for run in RUNS {
        let (ours, theirs) = (ours(run), theirs(run));
        assert!(!theirs.is_empty(), "nothing is recorded for the run {}", run.name);
        for name in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
            let place = format!("{}:{name}", run.name);
            let mut accept = |found: &Found<'_>| {
                let rows = matching(found);
                used.extend(&rows);
                !rows.is_empty()
            };
            let found = compare(&place, ours.get(name), theirs.get(name), &mut accept);
            unexpected.extend(found.iter().map(Found::to_string));
        }
    }
    assert!(
        unexpected.is_empty(),
        "{} differences are in no row of crates/generator/tests/oracle/differences.rs:\n{}",
        unexpected.len(),
        unexpected.join("\n")
    );
    let idle: Vec<&Row> = rows().filter(|row| !used.contains(row)).collect();
    assert!(idle.is_empty(), "no manifest needs these rows: {idle:#?}");
}

fn rows() -> impl Iterator<Item = &'static Row> {
    DIFFERENCES.iter().flat_map(|difference| difference.rows)
}

/// Returns the rows that match the difference.
fn matching(found: &Found<'_>) -> Vec<&'static Row> {
    let says = |side: &str, value: Option<&Value>| match (side, value) {
        (ABSENT, value) => value.is_none(),
        (ANY, value) => value.is_some(),
        (json, value) => {
            let json: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
            value == Some(&json)
        }
    };
    rows()
        .filter(|(path, ours, theirs)| {
            fits(path, &found.path) && says(ours, found.ours) && says(theirs, found.theirs)
        })
        .collect()
}

/// In a pattern, `*` matches any text. The whole path has to match.
fn fits(pattern: &str, path: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == path,
        Some((start, rest)) => path.strip_prefix(start).is_some_and(|path| {
            let ends = path.char_indices().map(|(at, _)| at).chain([path.len()]);
            ends.into_iter().any(|at| fits(rest, &path[at..]))
        }),
    }
}

/// The keys are plurals. If a file has several objects, the key is the kind, namespace and name.
fn ours(run: &Run) -> BTreeMap<String, Value> {
    let mut sources = SourceSet::default();
    for (path, text) in read_folder(&oracle().join("rust")) {
        sources.insert(path, text);
    }
    let made = generate(&sources, &(run.options)());
    let errors: Vec<_> = made
        .diagnostics
        .iter()
        .filter(|said| said.severity == Severity::Error)
        .map(|said| {
            let before = &sources.get(&said.place.path).unwrap_or_default()[..said.place.range.start];
            let line = before.matches('\n').count() + 1;
            format!("{}:{line}: {}", said.place.path, said.message)
        })
        .collect();
    assert!(errors.is_empty(), "rbuilder refuses:\n{}", errors.join("\n"));
    let files = made
        .files
        .into_iter()
        .filter(|file| file.path.starts_with(run.folder));
    files
        .flat_map(|file| objects(&file.text))
        .filter(|(name, _)| (run.objects)(name))
        .collect()
}

fn theirs(run: &Run) -> BTreeMap<String, Value> {
    let files = read_folder(&oracle().join("recorded").join(run.name));
    files.values().flat_map(|text| objects(text)).collect()
}

fn oracle() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle")
}

/// Returns the objects by name.
fn objects(text: &str) -> Vec<(String, Value)> {
    // Split at whole lines, because a line of a description may end with dashes.
    let documents = text.strip_prefix("---\n").unwrap_or(text).split("\n---\n");
    documents
        .filter(|document| !document.trim().is_empty())
        .map(|document| {
            let object: Value =
                serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{error}:\n{document}"));
            (name(&object), object)
        })
        .collect()
}

fn name(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    match text("/spec/names/plural") {
        Some(plural) => plural.to_owned(),
        None => ["/kind", "/metadata/namespace", "/metadata/name"]
            .into_iter()
            .filter_map(text)
            .collect::<Vec<_>>()
            .join(" "),
    }
}

/// Returns the texts by path.
fn read_folder(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(current) = open.pop() {
        for entry in fs::read_dir(&current).unwrap_or_else(|error| panic!("{}: {error}", current.display())) {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below the folder");
                let name = name.to_string_lossy().replace('\\', "/");
                files.insert(name, fs::read_to_string(&path).expect("text"));
            }
        }
    }
    files
}

#[test]
fn patterns_match_whole_paths() {
    for (pattern, path, expected) in [
        ("a/b", "a/b", true),
        ("a/b", "a/b/c", false),
        ("a/*", "a/b/c", true),
        ("*/c", "a/b/c", true),
        ("a*c", "ac", true),
        ("a*b*c", "axbxc", true),
        ("a*b*c", "axcxb", false),
    ] {
        assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
    }
}
