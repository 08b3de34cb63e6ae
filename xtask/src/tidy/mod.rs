//! `cargo xtask tidy`: checks our own conventions, i.e. those for which there is no lint.
//!
//! Most conventions are about a single file. They are implemented as a function which returns all
//! violations, and must be added to [`RULES`]. If you need more than one file, see `links.rs` and
//! `suites.rs` for examples.

mod links;
mod suites;

use std::path::Path;

use anyhow::{Result, bail};

use crate::committed::tracked_files;
use crate::repo;
use crate::versions;

/// A file in the repository. It might not be committed yet.
struct File<'a> {
    /// The path, which is relative to the repository root.
    path: &'a str,
    text: &'a str,
}

/// A convention, which returns its violations. The line number is missing for violations that
/// concern the entire file.
type Rule = fn(&File<'_>) -> Vec<(Option<usize>, &'static str)>;

const RULES: &[Rule] = &[
    module_header,
    no_todo,
    no_trailing_space,
    final_newline,
    template_suffix,
    compiled_samples,
    stray_version,
];

/// Checks all files that git tracks or would add.
pub(crate) fn check_conventions() -> Result<()> {
    let list = tracked_files()?;
    let sources = read_sources(&list);
    let files: Vec<_> = sources.iter().map(|(path, text)| File { path, text }).collect();
    let mut complaints: Vec<_> = files.iter().flat_map(check_file).collect();
    complaints.extend(suites::check_suites(&files));
    complaints.extend(links::check_links(&list.lines().collect(), &files));
    if !complaints.is_empty() {
        bail!("{}", complaints.join("\n"));
    }
    println!("tidy");
    Ok(())
}

/// Returns the path and the content of all files for which there are conventions. We have to skip
/// files which have been deleted (these can still be in `list`) and binary files.
fn read_sources(list: &str) -> Vec<(&str, String)> {
    list.lines()
        .filter(|path| is_ours(path))
        .filter_map(|path| Some((path, fs_err::read_to_string(repo::root().join(path)).ok()?)))
        .collect()
}

fn check_file(file: &File<'_>) -> Vec<String> {
    let path = file.path;
    let found = RULES.iter().flat_map(|rule| rule(file));
    found
        .map(|(line, what)| match line {
            Some(line) => format!("{path}:{line}: {what}"),
            None => format!("{path}: {what}"),
        })
        .collect()
}

/// Returns false for test cases. Since these are input or recorded output, they may contain
/// anything.
fn is_ours(path: &str) -> bool {
    let cases = [
        "/tests/cases/",
        "/tests/golden/",
        "/tests/ui/",
        "/tests/scaffold/",
        "/tests/yaml/",
    ];
    !cases.iter().any(|folder| path.contains(folder))
        && !path.ends_with(".lock")
        && !path.ends_with("LICENSE")
}

fn extension(path: &str) -> &str {
    Path::new(path)
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default()
}

/// Returns true if a file belongs to a project that is not in our workspace. Such files are
/// scaffolded, or look like they were written by a user.
fn is_project(path: &str) -> bool {
    path.starts_with("examples/") || path.starts_with("testdata/")
}

/// Each module needs a header. This is not required for test modules, since there is something
/// about them in the header of their parent.
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

/// Comments must not start with one of these words. They're fine anywhere else.
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
    // Tabs at the end of a line are allowed in TSV files, because it means that the last column is
    // empty.
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

/// Templates must end in `.tera`. The reason is that Cargo would skip a folder if there was a
/// Cargo.toml in it, and that git would apply any .gitignore.
fn template_suffix(file: &File<'_>) -> Vec<(Option<usize>, &'static str)> {
    if file.path.starts_with("templates/files/") && extension(file.path) != "tera" {
        return vec![(None, "name the template `….tera`")];
    }
    Vec::new()
}

/// Code samples must not be ignored. If nobody compiles a sample, it will be outdated sooner or
/// later. Use `no_run` instead for samples that can't run. CI would also think that there's a
/// skipped test.
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

/// Versions must not be repeated. To support a new minor version of Kubernetes, it should be enough
/// to change `rbuilder_catalogue::versions`.
fn stray_version(file: &File<'_>) -> Vec<(Option<usize>, &'static str)> {
    let strays = versions::find_strays(file.path, file.text).into_iter();
    strays
        .map(|line| {
            (
                Some(line),
                "take the version from `rbuilder_catalogue::versions`, or add a row to xtask/src/versions.yaml",
            )
        })
        .collect()
}

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
    fn rules_report_violations() {
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
}
