//! Snapshot tests of whole packages. `tests/cases/<name>/in/**` has the source, `out/**` the
//! manifests, and `stderr` the diagnostics.
//!
//! `SNAPSHOTS=overwrite cargo test -p rbuilder-generator --test suite cases::` updates the
//! snapshots. Review the diff before committing it.

// The test reads its cases from disk.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rbuilder_generator::{
    Code, Definition, Diagnostic, FileRange, Generated, Options, SourceSet, generate, generate_each,
};

type Files = BTreeMap<String, String>;

#[test]
fn cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut names: Vec<PathBuf> = fs::read_dir(&root)
        .expect("cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    names.sort();
    assert!(names.len() > 10, "the cases are missing");
    let overwrite = std::env::var("SNAPSHOTS").is_ok_and(|value| value == "overwrite");
    let mut wrong = Vec::new();
    for case in names {
        let actual = run(&read_folder(&case.join("in")));
        if overwrite {
            write(&case, &actual);
        }
        let mut expected = read_folder(&case.join("out"));
        expected.insert(
            "stderr".into(),
            fs::read_to_string(case.join("stderr")).unwrap_or_default(),
        );
        if actual != expected {
            wrong.push(difference(&case, &expected, &actual));
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\nSNAPSHOTS=overwrite writes today's output",
        wrong.join("\n")
    );
}

/// The output must not depend on the order of hashes, or on an earlier run.
#[test]
fn output_is_deterministic() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    for case in fs::read_dir(&root).expect("cases") {
        let files = read_folder(&case.expect("a case").path().join("in"));
        assert_eq!(run(&files), run(&files));
    }
}

/// With these definitions, we can validate objects without parsing the CRDs that we have just
/// printed.
#[test]
fn definitions_equal_those_in_the_printed_crds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let options = Options {
        definitions: true,
        ..Options::default()
    };
    let mut count = 0;
    for case in fs::read_dir(&root).expect("cases") {
        let case = case.expect("a case").path();
        let mut printed = Vec::new();
        let found = generate_each(&sources(&read_folder(&case.join("in"))), &options, &mut |file| {
            if file.path.starts_with("crd/") {
                let crd = serde_saphyr::from_str(&file.text).expect("YAML");
                printed.extend(Definition::of_crd(&crd).expect("a CRD"));
            }
        });
        assert_eq!(found.definitions.len(), printed.len(), "{}", case.display());
        for (definition, printed) in found.definitions.iter().zip(&printed) {
            let (ours, theirs) = (describe(definition), describe(printed));
            let mut lines = ours.lines().zip(theirs.lines());
            let difference = lines.find(|(ours, theirs)| ours != theirs);
            assert_eq!(difference, None, "{} of {}", definition.kind, case.display());
        }
        count += printed.len();
    }
    assert!(count > 20, "{count}");
}

/// Shows everything that reaches the API server.
fn describe(definition: &Definition) -> String {
    let schemas = [Some(&definition.schema), definition.stored_schema.as_ref()];
    let schemas = serde_json::to_string_pretty(&schemas).expect("JSON");
    let rest = Definition {
        schema: Default::default(),
        stored_schema: None,
        ..definition.clone()
    };
    format!("{rest:#?}\n{schemas}")
}

fn sources(files: &Files) -> SourceSet {
    let mut sources = SourceSet::default();
    files
        .iter()
        .for_each(|(path, text)| sources.insert(path.as_str(), text.as_str()));
    sources
}

fn run(files: &Files) -> Files {
    let sources = sources(files);
    let options = Options {
        version: Some("(test)".into()),
        ..Options::default()
    };
    let Generated {
        files: made,
        diagnostics,
        ..
    } = generate(&sources, &options);
    let mut out: Files = made.into_iter().map(|file| (file.path, file.text)).collect();
    out.insert(
        "stderr".into(),
        diagnostics
            .iter()
            .map(|diagnostic| show(diagnostic, files))
            .collect(),
    );
    out
}

/// Shows `error[RB0101]: message`, the place, the source line with a mark, and the help.
fn show(diagnostic: &Diagnostic, files: &Files) -> String {
    let Diagnostic { message, help, .. } = diagnostic;
    let FileRange { path, range } = &diagnostic.place;
    let text = files.get(path).map_or("", String::as_str);
    let before = &text[..range.start];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before[start..].chars().count() + 1;
    let source = text[start..].lines().next().unwrap_or_default();
    let width = text[range.clone()]
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        .max(1);
    let word = if diagnostic.is_error() { "error" } else { "warning" };
    let code = Code::of_message(message).map_or_else(String::new, |code| format!("[{}]", code.id));
    let mut shown = format!("{word}{code}: {message}\n --> {path}:{line}:{column}\n  | {source}\n  | ");
    shown.push_str(&format!("{}{}\n", " ".repeat(column - 1), "^".repeat(width)));
    if let Some(help) = help {
        shown.push_str(&format!("  = help: {help}\n"));
    }
    shown + "\n"
}

fn difference(case: &Path, expected: &Files, actual: &Files) -> String {
    let mut text = format!("--- {}\n", case.display());
    for path in expected
        .keys()
        .chain(actual.keys().filter(|path| !expected.contains_key(*path)))
    {
        let (expected, actual) = (expected.get(path), actual.get(path));
        if expected != actual {
            let show = |text: Option<&String>| text.map_or("(no such file)\n".to_owned(), Clone::clone);
            text.push_str(&format!(
                "{path}: expected\n{}{path}: got\n{}",
                show(expected),
                show(actual)
            ));
        }
    }
    text
}

fn write(case: &Path, files: &Files) {
    let _ = fs::remove_dir_all(case.join("out"));
    for (path, text) in files {
        let target = if path == "stderr" {
            case.join(path)
        } else {
            case.join("out").join(path)
        };
        if path == "stderr" && text.is_empty() {
            let _ = fs::remove_file(target);
            continue;
        }
        fs::create_dir_all(target.parent().expect("a folder")).expect("a folder for the output");
        fs::write(target, text).expect("the output is written");
    }
}

fn read_folder(folder: &Path) -> Files {
    let mut files = Files::new();
    let mut open = vec![folder.to_owned()];
    while let Some(current) = open.pop() {
        for entry in fs::read_dir(&current).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path
                    .strip_prefix(folder)
                    .expect("below the folder")
                    .to_string_lossy()
                    .replace('\\', "/");
                files.insert(name, fs::read_to_string(&path).expect("text"));
            }
        }
    }
    files
}
