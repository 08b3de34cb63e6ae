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

/// A convention about single files.
struct Rule {
    /// What to do about a violation.
    advice: &'static str,
    /// Returns true for the paths of files that must follow the convention.
    applies: fn(&str) -> bool,
    breaks: Breaks,
}

/// Returns true for a text or a line that violates a convention.
enum Breaks {
    File(fn(&str) -> bool),
    Line(fn(&str) -> bool),
}

use Breaks::{File as Text, Line};

const RULES: &[Rule] = &[
    MODULE_HEADER,
    NO_TODO,
    NO_TRAILING_SPACE,
    FINAL_NEWLINE,
    TEMPLATE_SUFFIX,
    COMPILED_SAMPLES,
    CRD_VIEW,
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
    let complaint = |rule: &Rule, line: Option<usize>| match line {
        Some(line) => format!("{}:{line}: {}", file.path, rule.advice),
        None => format!("{}: {}", file.path, rule.advice),
    };
    let found = RULES.iter().flat_map(|rule| {
        let lines = rule.violations(file);
        lines.into_iter().map(|line| complaint(rule, line))
    });
    // To support a new minor version of Kubernetes, it should be enough to change
    // `rbuilder_catalogue::versions`.
    let strays = versions::find_strays(file.path, file.text).into_iter();
    let what =
        "take the version from `rbuilder_catalogue::versions`, or add a row to xtask/src/versions.yaml";
    found
        .chain(strays.map(|line| format!("{}:{line}: {what}", file.path)))
        .collect()
}

impl Rule {
    /// Returns the lines of violations, or `None` for one that concerns the entire file.
    fn violations(&self, file: &File<'_>) -> Vec<Option<usize>> {
        if !(self.applies)(file.path) {
            return Vec::new();
        }
        let numbered = file.text.lines().zip(1..);
        match self.breaks {
            Text(breaks) => breaks(file.text).then_some(None).into_iter().collect(),
            Line(breaks) => numbered
                .filter(|(line, _)| breaks(line))
                .map(|(_, number)| Some(number))
                .collect(),
        }
    }
}

/// Returns false for test cases. Since these are input or recorded output, they may contain
/// anything.
fn is_ours(path: &str) -> bool {
    let cases = ["cases", "golden", "ui", "scaffold", "yaml"];
    !cases
        .iter()
        .any(|folder| path.contains(&format!("/tests/{folder}/")))
        && !path.ends_with(".lock")
        && !path.ends_with("LICENSE")
}

fn extension(path: &str) -> &str {
    let extension = Path::new(path).extension();
    extension
        .and_then(|extension| extension.to_str())
        .unwrap_or_default()
}

/// Returns true if a file belongs to a project that is not in our workspace. Such files are
/// scaffolded, or look like they were written by a user.
fn is_project(path: &str) -> bool {
    path.starts_with("examples/") || path.starts_with("testdata/")
}

fn has_extension(path: &str, extensions: &[&str]) -> bool {
    extensions.contains(&extension(path))
}

/// Each module needs a header. This is not required for test modules, since there is something
/// about them in the header of their parent.
const MODULE_HEADER: Rule = Rule {
    advice: "begin the module with `//!`: what it is for, what it leaves to others",
    applies: |path| {
        let is_module = has_extension(path, &["rs"]) && path.contains("src/");
        is_module && !is_project(path) && !path.ends_with("/tests.rs")
    },
    breaks: Text(|text| !text.starts_with("//!")),
};

/// Comments must not start with one of these words. They're fine anywhere else.
const NO_TODO: Rule = Rule {
    advice: "do it, or open an issue",
    applies: |path| {
        let is_source = has_extension(path, &["rs", "toml", "sh", "yml", "yaml", "go"]);
        is_source && !is_project(path) && !path.starts_with("templates/files/")
    },
    breaks: Line(|line| {
        let line = line.trim_start();
        let comment = line.strip_prefix("// ").or_else(|| line.strip_prefix("# "));
        comment.is_some_and(|text| ["TODO", "FIXME", "XXX"].iter().any(|word| text.starts_with(word)))
    }),
};

/// Tabs at the end of a line are allowed in TSV files, because it means that the last column is
/// empty.
const NO_TRAILING_SPACE: Rule = Rule {
    advice: "white space at the end of the line",
    applies: |path| !has_extension(path, &["md", "diff", "stderr", "tsv"]),
    breaks: Line(|line| line.ends_with([' ', '\t'])),
};

const FINAL_NEWLINE: Rule = Rule {
    advice: "end the file with a line feed",
    applies: |_| true,
    breaks: Text(|text| !text.is_empty() && !text.ends_with('\n')),
};

/// Templates must end in `.tera`. The reason is that Cargo would skip a folder if there was a
/// Cargo.toml in it, and that git would apply any .gitignore.
const TEMPLATE_SUFFIX: Rule = Rule {
    advice: "name the template `….tera`",
    applies: |path| path.starts_with("templates/files/") && !has_extension(path, &["tera"]),
    breaks: Text(|_| true),
};

/// Code samples must not be ignored. If nobody compiles a sample, it will be outdated sooner or
/// later. Use `no_run` instead for samples that can't run. CI would also think that there's a
/// skipped test.
const COMPILED_SAMPLES: Rule = Rule {
    advice: "let the sample be compiled: `no_run` instead of `ignore`",
    applies: |path| has_extension(path, &["md", "rs"]),
    breaks: Line(|line| {
        let text = line.trim_start().trim_start_matches(['/', '!', ' ']);
        let fence = text.strip_prefix("```").unwrap_or_default();
        fence.split(',').any(|word| word.trim() == "ignore")
    }),
};

/// There used to be 27 places that indexed the versions of a CRD, with different ideas of what is
/// served. This doesn't apply to tests, which also change versions.
const CRD_VIEW: Rule = Rule {
    advice: "read the versions of the CRD with `rbuilder_kubernetes::crd::Crd`",
    applies: |path| {
        let is_source = has_extension(path, &["rs"]) && path.contains("src/");
        is_source
            && !is_project(path)
            && path != "crates/kubernetes/src/crd.rs"
            && !path.ends_with("/tests.rs")
    },
    breaks: Text(|text| {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        // Split, or this file would violate its own rule.
        let accesses = [
            concat!("spec", "[\"versions\"]"),
            concat!("spec\"]", "[\"versions\"]"),
            concat!("/spec", "/versions"),
            concat!("get(", "\"versions\")"),
            concat!("get_mut(", "\"versions\")"),
        ];
        accesses.iter().any(|access| code.contains(access))
    }),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_report_violations() {
        let check = |rule: Rule, path: &str, text: &str, expected: &[Option<usize>]| {
            assert_eq!(
                rule.violations(&File { path, text }),
                expected,
                "{path}: {text:?}"
            );
        };
        check(MODULE_HEADER, "cli/src/a.rs", "use b;\n", &[None]);
        check(MODULE_HEADER, "cli/src/a.rs", "//! What it is for.\n", &[]);
        check(MODULE_HEADER, "cli/src/a/tests.rs", "use super::*;\n", &[]);
        check(MODULE_HEADER, "examples/x/src/a.rs", "use b;\n", &[]);
        check(MODULE_HEADER, "testdata/x/src/a.rs", "use b;\n", &[]);
        check(
            NO_TODO,
            "cli/src/a.rs",
            concat!("//! A.\n// TO", "DO: b\n"),
            &[Some(2)],
        );
        check(NO_TODO, "docs/a.md", concat!("TO", "DO\n"), &[]);
        check(NO_TRAILING_SPACE, "a.toml", "a = 1 \nb = 2\n", &[Some(1)]);
        check(NO_TRAILING_SPACE, "a.md", "break  \n", &[]);
        check(FINAL_NEWLINE, "a.toml", "a = 1", &[None]);
        check(FINAL_NEWLINE, "a.toml", "", &[]);
        check(TEMPLATE_SUFFIX, "templates/files/init/Cargo.toml", "", &[None]);
        check(TEMPLATE_SUFFIX, "templates/files/init/Cargo.toml.tera", "", &[]);
        let indexed = "//! A.\nlet found = crd[\"spec\"][\"versions\"];\n";
        check(CRD_VIEW, "cli/src/a.rs", indexed, &[None]);
        check(CRD_VIEW, "cli/tests/a.rs", indexed, &[]);
        check(CRD_VIEW, "cli/src/a.rs", &format!("#[cfg(test)]\n{indexed}"), &[]);
        let ignored = "//! A.\n//! ```rust,ignore\n//! b();\n//! ```\n";
        check(COMPILED_SAMPLES, "cli/src/a.rs", ignored, &[Some(2)]);
        check(COMPILED_SAMPLES, "docs/a.md", "```ignore\nb()\n```\n", &[Some(1)]);
        check(COMPILED_SAMPLES, "docs/a.md", "```rust,no_run\nb()\n```\n", &[]);
    }
}
