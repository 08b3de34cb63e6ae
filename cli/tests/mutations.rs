//! Single mistakes in PROJECT and in flags, and values that only look like mistakes. Commands must
//! reject the former and accept the latter, and a rejected command must change nothing. For
//! mistakes in the source of a project, `crates/generator/tests/mutations.rs` compares rbuilder with the
//! API server.

#![allow(clippy::disallowed_methods)] // the tests create the input

use crate::support;

use support::Folder;

/// Each row is a command line. Mistakes have a tab and `refused` after it.
const FLAGS: &str = include_str!("mutations/flags.tsv");
/// Each row is a text to replace in PROJECT, and its replacement. Mistakes have `refused` after
/// that.
const PROJECT: &str = include_str!("mutations/project.tsv");

/// This reads all of PROJECT, and would change it.
const NEXT: &str = "create webhook --group cache --version v1alpha1 --kind Memcached --defaulting --dry-run";

fn project() -> Folder {
    Folder::with_api("sample", "--group cache --version v1alpha1 --kind Memcached")
}

/// Compares what the command does with the row.
fn check(folder: &Folder, line: &str, row: &str, expected: Option<&str>, wrong: &mut Vec<String>) {
    let before = folder.tree();
    let ran = folder.run(line);
    let is_refused = ran.code != 0;
    if is_refused != (expected == Some("refused")) {
        wrong.push(format!("{row}: code {}\n{}", ran.code, ran.err));
    } else if is_refused && (folder.tree() != before || ran.err.is_empty()) {
        wrong.push(format!(
            "{row}: refused, and something was changed or nothing said"
        ));
    }
}

#[test]
fn reports_mistakes_in_flags() {
    let folder = project();
    let mut wrong = Vec::new();
    for row in FLAGS.lines() {
        let (line, expected) = row.split_once('\t').unwrap_or((row, ""));
        let line = line
            .replace("{253}", &"a".repeat(253))
            .replace("{64}", &"a".repeat(64));
        let expected = (!expected.is_empty()).then_some(expected);
        if line.starts_with("init") {
            check(
                &Folder::new(),
                &format!("{line} --dry-run"),
                row,
                expected,
                &mut wrong,
            );
        } else {
            check(&folder, &format!("{line} --dry-run"), row, expected, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn reports_mistakes_in_project() {
    let folder = project();
    let text = folder.tree()["PROJECT"].clone();
    let mut wrong = Vec::new();
    for row in PROJECT.lines() {
        let mut columns = row.split('\t').map(|column| column.replace("\\n", "\n"));
        let (from, to) = (
            columns.next().unwrap_or_default(),
            columns.next().unwrap_or_default(),
        );
        assert_eq!(text.matches(&from).count(), 1, "{from:?} in\n{text}");
        folder.write("PROJECT", &text.replacen(&from, &to, 1));
        check(&folder, NEXT, row, columns.next().as_deref(), &mut wrong);
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}
