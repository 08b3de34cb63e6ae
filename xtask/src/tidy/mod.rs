//! `cargo xtask tidy`: conventions that no compiler checks.
//!
//! A convention is a function from a file to complaints, and a line in [`RULES`].

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::repo;
use crate::sh::Cmd;

/// A file of the repository, as committed or about to be.
struct File<'a> {
    /// Relative to the root.
    path: &'a str,
    text: &'a str,
}

/// What is wrong, if anything; the line, where it is one line.
type Rule = fn(&File<'_>) -> Vec<(Option<usize>, &'static str)>;

const RULES: &[Rule] = &[
    module_header,
    no_todo,
    no_trailing_space,
    final_newline,
    template_suffix,
    compiled_samples,
];

/// Applies every rule to every file that git knows or would add.
pub(crate) fn run() -> Result<()> {
    let list = Cmd::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .dir(repo::root())
        .read()?;
    let mut complaints = Vec::new();
    for path in list.lines().filter(|path| is_ours(path)) {
        // A file deleted but not yet committed is still listed; one that is no text has no conventions.
        let Ok(text) = fs_err::read_to_string(repo::root().join(path)) else {
            continue;
        };
        let file = File { path, text: &text };
        complaints.extend(
            RULES
                .iter()
                .flat_map(|rule| rule(&file))
                .map(|(line, what)| match line {
                    Some(line) => format!("{path}:{line}: {what}"),
                    None => format!("{path}: {what}"),
                }),
        );
    }
    complaints.extend(licences()?);
    if !complaints.is_empty() {
        bail!("{}", complaints.join("\n"));
    }
    println!("tidy");
    Ok(())
}

/// Test cases may hold anything: they are input, or what a command printed.
fn is_ours(path: &str) -> bool {
    let cases = [
        "/tests/cases/",
        "/tests/golden/",
        "/tests/ui/",
        "/tests/scaffold/",
        "/tests/yaml/",
    ];
    !cases.iter().any(|folder| path.contains(folder)) && !path.ends_with(".lock") && path != "LICENSE"
}

fn extension(path: &str) -> &str {
    Path::new(path)
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default()
}

/// A file of a project that is not part of this workspace: it is as scaffolded, or as its own users write it.
fn is_project(path: &str) -> bool {
    path.starts_with("examples/") || path.starts_with("testdata/")
}

/// A module of tests is what its parent's header says.
fn module_header(file: &File<'_>) -> Vec<(Option<usize>, &'static str)> {
    let is_module = extension(file.path) == "rs" && file.path.contains("src/") && !is_project(file.path);
    if is_module && !file.path.ends_with("/tests.rs") && !file.text.starts_with("//!") {
        return vec![(
            None,
            "begin the module with `//!`: what it is for, what it leaves to others",
        )];
    }
    Vec::new()
}

/// A comment that begins with such a word; code may well deal with the words themselves.
fn no_todo(file: &File<'_>) -> Vec<(Option<usize>, &'static str)> {
    let is_source = ["rs", "toml", "sh", "yml"].contains(&extension(file.path));
    let is_ours = is_source && !is_project(file.path) && !file.path.starts_with("templates/files/");
    let is_note = |line: &str| {
        let comment = ["// ", "# "]
            .iter()
            .find_map(|start| line.trim_start().strip_prefix(start));
        comment.is_some_and(|text| ["TODO", "FIXME", "XXX"].iter().any(|word| text.starts_with(word)))
    };
    lines(file, |line| is_ours && is_note(line), "do it, or open an issue")
}

fn no_trailing_space(file: &File<'_>) -> Vec<(Option<usize>, &'static str)> {
    // In a table a tab at the end is an empty last column.
    let is_free = ["md", "diff", "stderr", "tsv"].contains(&extension(file.path));
    lines(
        file,
        |line| !is_free && line.ends_with([' ', '\t']),
        "white space at the end of the line",
    )
}

fn final_newline(file: &File<'_>) -> Vec<(Option<usize>, &'static str)> {
    if file.text.is_empty() || file.text.ends_with('\n') {
        return Vec::new();
    }
    vec![(None, "end the file with a line feed")]
}

/// Cargo leaves out folders with a Cargo.toml, and git obeys a .gitignore, wherever they are.
fn template_suffix(file: &File<'_>) -> Vec<(Option<usize>, &'static str)> {
    if file.path.starts_with("templates/files/") && extension(file.path) != "tera" {
        return vec![(None, "name the template `….tera`")];
    }
    Vec::new()
}

/// Samples are compiled or they rot; a sample that needs more than the compiler is `no_run`. CI counts an ignored one as
/// a skipped test.
fn compiled_samples(file: &File<'_>) -> Vec<(Option<usize>, &'static str)> {
    let is_documentation = ["md", "rs"].contains(&extension(file.path));
    let is_ignored = |line: &str| {
        let text = line.trim_start().trim_start_matches(['/', '!', ' ']);
        let fence = text.strip_prefix("```").unwrap_or_default();
        fence.split(',').any(|word| word.trim() == "ignore")
    };
    lines(
        file,
        |line| is_documentation && is_ignored(line),
        "let the sample be compiled: `no_run` instead of `ignore`",
    )
}

/// A complaint about each line that is wrong.
fn lines(
    file: &File<'_>,
    is_wrong: impl Fn(&str) -> bool,
    what: &'static str,
) -> Vec<(Option<usize>, &'static str)> {
    let numbered = file.text.lines().enumerate();
    numbered
        .filter(|(_, line)| is_wrong(line))
        .map(|(index, _)| (Some(index + 1), what))
        .collect()
}

/// Licences that deny.toml does not allow, among the workspace's dependencies.
///
/// cargo-deny says more, where it is installed; this needs nothing but cargo. The JSON is searched as text: a licence
/// and a package name hold nothing that JSON escapes.
fn licences() -> Result<Vec<String>> {
    let policy = fs_err::read_to_string(repo::root().join("deny.toml"))?;
    let allowed = allowed_licences(&policy).context("deny.toml lists no `allow`ed licences")?;
    let metadata = Cmd::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .dir(repo::root())
        .read()?;
    let mut complaints: Vec<_> = packages(&metadata)
        .filter(|(_, licence)| !is_allowed(licence, &allowed))
        .map(|(name, licence)| format!("{name}: the licence `{licence}` is not allowed by deny.toml"))
        .collect();
    complaints.sort();
    complaints.dedup();
    Ok(complaints)
}

fn allowed_licences(policy: &str) -> Option<Vec<&str>> {
    let (_, list) = policy.split_once("\nallow = [")?;
    let (list, _) = list.split_once(']')?;
    let names: Vec<_> = list.split('"').skip(1).step_by(2).collect();
    (!names.is_empty()).then_some(names)
}

/// Name and licence of each package in the output of `cargo metadata`.
fn packages(metadata: &str) -> impl Iterator<Item = (&str, &str)> {
    metadata.split(r#"{"name":""#).skip(1).filter_map(|package| {
        let (name, rest) = package.split_once('"')?;
        // A dependency or a target begins the same way; only a package has an id and a licence before its contents.
        let (_, licence) = rest.split_once(r#""license":"#)?;
        let head = &rest[..rest.len() - licence.len()];
        let is_package = head.starts_with(r#","version":"#) && !head.contains(r#""dependencies":"#);
        let licence = licence
            .strip_prefix('"')
            .map_or("none", |text| text.split('"').next().unwrap_or_default());
        is_package.then_some((name, licence))
    })
}

/// Whether an SPDX expression can be met with allowed licences only. `OR` binds weaker than `AND`, as in SPDX.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    // Old manifests write `/` for OR. A parenthesis holds an OR within an AND: each side must then be met.
    let expression = expression.replace('/', " OR ");
    if let Some((group, rest)) = expression
        .strip_prefix('(')
        .and_then(|rest| rest.split_once(") AND "))
    {
        return is_allowed(group, allowed) && is_allowed(rest, allowed);
    }
    expression.split(" OR ").any(|choice| {
        choice
            .split(" AND ")
            .all(|licence| allowed.contains(&licence.trim_matches(['(', ')', ' '])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(rule: Rule, path: &str, text: &str) -> Vec<Option<usize>> {
        rule(&File { path, text })
            .into_iter()
            .map(|(line, _)| line)
            .collect()
    }

    #[test]
    fn rules_find_what_they_are_for() {
        let check = |rule: Rule, path: &str, text: &str, expected: &[Option<usize>]| {
            assert_eq!(complaints(rule, path, text), expected, "{path}: {text:?}");
        };
        check(module_header, "cli/src/a.rs", "use b;\n", &[None]);
        check(module_header, "cli/src/a.rs", "//! What it is for.\n", &[]);
        check(module_header, "cli/src/a/tests.rs", "use super::*;\n", &[]);
        check(module_header, "examples/x/src/a.rs", "use b;\n", &[]);
        check(module_header, "testdata/x/src/a.rs", "use b;\n", &[]);
        check(
            no_todo,
            "cli/src/a.rs",
            concat!("//! A.\n// TO", "DO: b\n"),
            &[Some(2)],
        );
        check(no_todo, "docs/a.md", concat!("TO", "DO\n"), &[]);
        check(no_trailing_space, "a.toml", "a = 1 \nb = 2\n", &[Some(1)]);
        check(no_trailing_space, "a.md", "break  \n", &[]);
        check(final_newline, "a.toml", "a = 1", &[None]);
        check(final_newline, "a.toml", "", &[]);
        check(template_suffix, "templates/files/init/Cargo.toml", "", &[None]);
        check(template_suffix, "templates/files/init/Cargo.toml.tera", "", &[]);
        let ignored = "//! A.\n//! ```rust,ignore\n//! b();\n//! ```\n";
        check(compiled_samples, "cli/src/a.rs", ignored, &[Some(2)]);
        check(compiled_samples, "docs/a.md", "```ignore\nb()\n```\n", &[Some(1)]);
        check(compiled_samples, "docs/a.md", "```rust,no_run\nb()\n```\n", &[]);
    }

    #[test]
    fn spdx_expressions_are_met_by_allowed_licences() {
        let allowed = [
            "MIT",
            "Apache-2.0",
            "ISC",
            "Apache-2.0 WITH LLVM-exception",
            "BSD-3-Clause",
        ];
        let check = |expression: &str, expected: bool| {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}")
        };
        check("MIT", true);
        check("GPL-3.0-only", false);
        check("MIT OR GPL-3.0-only", true);
        check("MIT/Apache-2.0", true);
        check("Apache-2.0 AND ISC", true);
        check("MIT AND GPL-3.0-only", false);
        check("Apache-2.0 WITH LLVM-exception", true);
        check("(MIT OR GPL-3.0-only) AND BSD-3-Clause", true);
        check("(MIT OR Apache-2.0) AND Unicode-3.0", false);
        check("none", false);
    }

    #[test]
    fn packages_are_told_from_dependencies() {
        let metadata = concat!(
            r#"{"packages":[{"name":"a","version":"1.0.0","id":"x","license":"MIT","license_file":null,"#,
            r#""dependencies":[{"name":"b","source":"registry"}]},"#,
            r#"{"name":"c","version":"1.0.0","id":"y","license":null,"license_file":null,"dependencies":[]}]}"#
        );
        assert_eq!(
            packages(metadata).collect::<Vec<_>>(),
            [("a", "MIT"), ("c", "none")]
        );
    }

    #[test]
    fn the_committed_policy_can_be_read() {
        let policy = fs_err::read_to_string(repo::root().join("deny.toml")).unwrap();
        assert!(allowed_licences(&policy).unwrap().contains(&"Apache-2.0"));
    }
}
