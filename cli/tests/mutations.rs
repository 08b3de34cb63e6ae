//! Single mistakes in PROJECT and in flags, beside what only looks like one: the command refuses the former and takes
//! the latter, and a refused command changes nothing. What is wrong in the source of a project is held to the API
//! server's verdicts by `generator/tests/mutations.rs`.

#![allow(clippy::disallowed_methods)] // the tests make the input themselves

use crate::support;

use support::Folder;

/// A tab between what the command line is and, for mistakes, `refused`.
const FLAGS: &str = include_str!("mutations/flags.tsv");
/// Text to replace in PROJECT, its replacement, and, for mistakes, `refused`.
const PROJECT: &str = include_str!("mutations/project.tsv");

/// A command that reads all of PROJECT and would change it.
const NEXT: &str = "create webhook --group cache --version v1alpha1 --kind Memcached --defaulting --dry-run";

fn project() -> Folder {
    let folder = Folder::new();
    folder.run("init --domain example.com --project-name sample").ok();
    folder
        .run("create api --group cache --version v1alpha1 --kind Memcached")
        .ok();
    folder
}

/// Runs the command and compares its end with the row's word.
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
fn mistakes_in_flags_are_told() {
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
fn mistakes_in_project_are_told() {
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
