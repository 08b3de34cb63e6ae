//! Checks the links in documents.
//!
//! The file and the heading of each link must exist. Every page of the guide must be in both lists
//! of pages. If a page is about the library, it must have a link to the API reference.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, extension};
use crate::book::PUBLISHED_REFERENCE;

/// The two lists of pages. The first is for people who browse the repository, the second for the
/// book.
const LISTS: [&str; 2] = ["docs/README.md", "docs/SUMMARY.md"];

/// Reports broken links, pages that are not in all of the lists, and pages about the library which
/// don't link to the API reference.
pub(super) fn check_links(paths: &BTreeSet<&str>, files: &[File<'_>]) -> Vec<String> {
    let pages = files
        .iter()
        .filter(|file| extension(file.path) == "md" && !file.path.starts_with("templates/"));
    let headings: BTreeMap<&str, BTreeSet<String>> = pages
        .clone()
        .map(|page| (page.path, anchors(page.text)))
        .collect();
    let mut complaints: Vec<_> = pages
        .flat_map(|page| {
            let headings = &headings;
            links(page.text).into_iter().filter_map(move |(line, target)| {
                let what = check_target(page.path, &target, paths, headings)?;
                Some(format!("{}:{line}: {what}", page.path))
            })
        })
        .collect();
    for list in LISTS {
        let Some(file) = files.iter().find(|file| file.path == list) else {
            continue;
        };
        let listed: BTreeSet<String> = links(file.text)
            .into_iter()
            .map(|(_, target)| format!("docs/{target}"))
            .collect();
        let lacking = paths
            .iter()
            .filter(|path| is_page(path) && !listed.contains(**path));
        complaints.extend(lacking.map(|path| format!("{list}: expected a link to {path}")));
    }
    let unlinked = files.iter().filter(|file| {
        is_page(file.path) && uses_library(file.text) && !file.text.contains(PUBLISHED_REFERENCE)
    });
    complaints.extend(unlinked.map(|page| {
        format!(
            "{}: expected a link to the reference of what its code uses, {PUBLISHED_REFERENCE}rbuilder/…",
            page.path
        )
    }));
    complaints
}

fn uses_library(page: &str) -> bool {
    ["use rbuilder::", "`ctx.", "`Controller", "`Manager"]
        .iter()
        .any(|sign| page.contains(sign))
}

fn is_page(path: &str) -> bool {
    let name = path.strip_prefix("docs/").unwrap_or_default();
    name.ends_with(".md") && !name.contains('/') && !LISTS.contains(&path)
}

/// Checks where a link points to. If there is a problem, this returns a description.
fn check_target(
    page: &str,
    target: &str,
    paths: &BTreeSet<&str>,
    headings: &BTreeMap<&str, BTreeSet<String>>,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match path {
        "" => page.to_owned(),
        _ => join(page, path),
    };
    let is_folder = || paths.iter().any(|known| known.starts_with(&format!("{path}/")));
    if !paths.contains(path.as_str()) && !is_folder() {
        return Some(format!("the link leads to `{path}`, which does not exist"));
    }
    let is_known = headings
        .get(path.as_str())
        .is_none_or(|anchors| anchor.is_empty() || anchors.contains(anchor));
    (!is_known).then(|| format!("`{path}` has no heading for `#{anchor}`"))
}

/// Resolves a link. It is relative to the page.
fn join(page: &str, link: &str) -> String {
    let (folder, _) = page.rsplit_once('/').unwrap_or_default();
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(link.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the targets of all links on a page, with line numbers. Code is ignored.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        let mut rest = line.as_str();
        while let Some(place) = rest.find("](") {
            rest = &rest[place + 2..];
            let target: String = rest.chars().take_while(|c| !matches!(c, ')' | ' ')).collect();
            found.push((number, target));
        }
        // This is the definition of a reference (`[name]: target`).
        if let Some((_, target)) = line
            .strip_prefix('[')
            .and_then(|definition| definition.split_once("]: "))
        {
            found.push((number, target.trim().to_owned()));
        }
    }
    found
}

/// Returns an anchor for each heading of a page. GitHub and mdBook use the same ones.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title
            .trim()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept
            .map(|c| if c == ' ' { '-' } else { c })
            .flat_map(char::to_lowercase)
            .collect();
        let first = anchor.clone();
        let again = (1..).map(|number| format!("{first}-{number}"));
        let free = std::iter::once(anchor)
            .chain(again)
            .find(|anchor| !found.contains(anchor));
        found.extend(free);
    }
    found
}

/// Returns all lines which are not in a code block, with line numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence = None;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let marks = line.trim_start().chars().take_while(|c| *c == '`').count();
        match fence {
            Some(opened) if marks >= opened => fence = None,
            None if marks >= 3 => fence = Some(marks),
            None => return Some((index + 1, line)),
            Some(_) => {}
        }
        None
    })
}

/// Removes everything between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page: &str, expected: &[&str]) {
        let other = "# Other\n\n## `init --bin`, and more\n\n## Twice\n\n## Twice\n";
        let files = [
            ("docs/page.md", page),
            ("docs/other.md", other),
            ("cli/src/main.rs", ""),
        ];
        check_files(&files, expected);
    }

    fn check_files(files: &[(&str, &str)], expected: &[&str]) {
        let files: Vec<_> = files.iter().map(|&(path, text)| File { path, text }).collect();
        let paths = files.iter().map(|file| file.path).collect();
        assert_eq!(check_links(&paths, &files), expected, "{}", files[0].text);
    }

    #[test]
    fn reports_broken_links() {
        check("[a](other.md), [b](../cli/src), [c](https://kube.rs)", &[]);
        check(
            "[a](other.md#init---bin-and-more) [b](other.md#twice-1) [c](#page)\n# Page",
            &[],
        );
        check(
            "\n[a](gone.md)",
            &["docs/page.md:2: the link leads to `docs/gone.md`, which does not exist"],
        );
        check(
            "[a](other.md#twice-2)",
            &["docs/page.md:1: `docs/other.md` has no heading for `#twice-2`"],
        );
        check(
            "[a][b]\n\n[b]: gone.md",
            &["docs/page.md:3: the link leads to `docs/gone.md`, which does not exist"],
        );
        check("`[a](gone.md)`\n```md\n[a](gone.md)\n```", &[]);
    }

    #[test]
    fn reports_unlisted_pages() {
        let files = [
            ("docs/README.md", "[a](page.md)"),
            ("docs/SUMMARY.md", ""),
            ("docs/page.md", ""),
        ];
        check_files(&files, &["docs/SUMMARY.md: expected a link to docs/page.md"]);
    }

    #[test]
    fn pages_about_the_library_link_to_its_reference() {
        let code = "`ctx.apply(object)`";
        let expected = "docs/page.md: expected a link to the reference of what its code uses, \
            https://docs.rs/rbuilder-runtime/latest/rbuilder/…";
        check(code, &[expected]);
        check(
            &format!("{code} [a]({PUBLISHED_REFERENCE}rbuilder/struct.Ctx.html)"),
            &[],
        );
        check("`cargo`", &[]);
    }
}
