//! Edits of a workspace's Cargo.toml that add a member.
//!
//! Text is inserted at spans reported by the parser, so the rest of the file is preserved byte for
//! byte.

use std::ops::Range;

use rbuilder_generator::{Membership, find_membership};
use toml_edit::{Array, Document, Item, Table, Value};

use super::Obstacle;

const WORKSPACE: &str = "workspace";
const MEMBERS: &str = "members";

/// Adds a path to the members of a workspace, unless the path or a matching pattern is listed. As
/// with `cargo new`, the path is inserted in order if the members are sorted, and appended
/// otherwise.
///
/// # Errors
/// Fails if `text` is not valid TOML, or if the workspace is missing, inline or dotted.
pub fn add_member(text: &str, path: &str) -> Result<String, Obstacle> {
    let document = Document::parse(text)
        .map_err(|error| Obstacle::new(format!("it does not parse ({})", error.message())))?;
    if find_membership(text, path) == Membership::Listed {
        return Ok(text.to_owned());
    }
    let workspace = document
        .get(WORKSPACE)
        .ok_or_else(|| Obstacle::new("it has no `[workspace]`"))?;
    let edited = match workspace.get(MEMBERS) {
        Some(Item::Value(Value::Array(members))) => insert_in(text, members, path),
        Some(_) => None,
        None => insert_list(text, workspace, path),
    };
    let edited = edited.ok_or_else(|| Obstacle::new("`[workspace]` has an unusual form"))?;
    match find_membership(&edited, path) {
        Membership::Listed => Ok(edited),
        _ => Err(Obstacle::new("`[workspace]` has an unusual form")),
    }
}

fn insert_list(text: &str, workspace: &Item, path: &str) -> Option<String> {
    let table = workspace.as_table().filter(|table| !table.is_dotted())?;
    let end = line_end(text);
    let line = format!("{MEMBERS} = [\"{path}\"]{end}");
    if table.is_implicit() {
        // The file only contains `[workspace.…]` headers, so put `[workspace]` before the first of
        // them.
        let first = first_subtable(table)?;
        return Some(insert(text, first, &format!("[{WORKSPACE}]{end}{line}{end}")));
    }
    let header = table.span()?.end;
    match text[header..].find('\n') {
        Some(at) => Some(insert(text, header + at + 1, &line)),
        None => Some(format!("{text}{end}{line}")),
    }
}

fn first_subtable(table: &Table) -> Option<usize> {
    let starts = table.iter().filter_map(|(_, item)| {
        let below = item.as_table().filter(|below| !below.is_dotted())?;
        match below.is_implicit() {
            true => first_subtable(below),
            false => Some(below.span()?.start),
        }
    });
    starts.min()
}

fn insert_in(text: &str, members: &Array, path: &str) -> Option<String> {
    let list = members.span()?;
    let spans: Vec<Range<usize>> = members.iter().map(Value::span).collect::<Option<_>>()?;
    let names: Vec<&str> = members.iter().map(Value::as_str).collect::<Option<_>>()?;
    let quoted = format!("\"{path}\"");
    let at = match names.is_sorted() {
        true => names.partition_point(|name| *name < path),
        false => names.len(),
    };
    let inner = &text[list.clone()];
    if names.is_empty() || !inner.contains('\n') {
        // The list is empty or on one line, so there's no indentation to follow.
        return Some(match at.checked_sub(1) {
            None if names.is_empty() => insert(text, list.start + 1, &quoted),
            None => insert(text, spans[0].start, &format!("{quoted}, ")),
            Some(before) => insert(text, spans[before].end, &format!(", {quoted}")),
        });
    }
    let end = line_end(text);
    let indent = indent_at(text, spans[0].start).or_else(|| indent_at(text, spans.last()?.start))?;
    let Some(before) = at.checked_sub(1) else {
        // Insert a line after the bracket, above the comments of the first member.
        let line = text[list.start..spans[0].start].find('\n')? + list.start + 1;
        return Some(insert(text, line, &format!("{indent}{quoted},{end}")));
    };
    // Insert below the preceding member, which keeps its trailing comment.
    let limit = spans.get(at).map_or(list.end - 1, |next| next.start);
    let rest = &text[spans[before].end..limit];
    let Some(line) = rest.find('\n') else {
        return Some(insert(text, spans[before].end, &format!(", {quoted}")));
    };
    let line = spans[before].end + line + 1;
    let has_comma = has_comma(rest);
    let comma = if at < names.len() || has_comma { "," } else { "" };
    let edited = insert(text, line, &format!("{indent}{quoted}{comma}{end}"));
    match has_comma {
        true => Some(edited),
        false => Some(insert(&edited, spans[before].end, ",")),
    }
}

fn has_comma(rest: &str) -> bool {
    let code = rest
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    code.into_iter().any(|code| code.contains(','))
}

fn indent_at(text: &str, place: usize) -> Option<&str> {
    let start = text[..place].rfind('\n')? + 1;
    let before = &text[start..place];
    before.trim().is_empty().then_some(before)
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn insert(text: &str, place: usize, added: &str) -> String {
    let mut edited = text.to_owned();
    edited.insert_str(place, added);
    edited
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_a_member_changes_nothing_else() {
        for (before, after) in [
            ("[workspace]\n", "[workspace]\nmembers = [\"b/c\"]\n"),
            ("[workspace]", "[workspace]\nmembers = [\"b/c\"]\n"),
            (
                "# x\r\n[workspace] # y\r\nresolver = \"3\"\r\n",
                "# x\r\n[workspace] # y\r\nmembers = [\"b/c\"]\r\nresolver = \"3\"\r\n",
            ),
            (
                "[package]\nname = \"a\"\n\n# z\n[workspace.package]\nversion = \"1.0.0\"\n",
                "[package]\nname = \"a\"\n\n# z\n[workspace]\nmembers = [\"b/c\"]\n\n[workspace.package]\nversion = \"1.0.0\"\n",
            ),
            (
                "[workspace]\nmembers = []\n",
                "[workspace]\nmembers = [\"b/c\"]\n",
            ),
            (
                "[workspace]\nmembers = [\n]\n",
                "[workspace]\nmembers = [\"b/c\"\n]\n",
            ),
            (
                "workspace = { members = ['a', \"d\"] }\n",
                "workspace = { members = ['a', \"b/c\", \"d\"] }\n",
            ),
            (
                "workspace.members = [\"z\"]\n",
                "workspace.members = [\"b/c\", \"z\"]\n",
            ),
            (
                "[workspace]\nmembers = [\"z\", \"a\"] # order\n",
                "[workspace]\nmembers = [\"z\", \"a\", \"b/c\"] # order\n",
            ),
            (
                "[workspace]\nmembers = [\n    \"a\", # about a\n    # about d\n    \"d\",\n]\n",
                "[workspace]\nmembers = [\n    \"a\", # about a\n    \"b/c\",\n    # about d\n    \"d\",\n]\n",
            ),
            (
                "[workspace]\nmembers = [\n  \"a\" # about a, and more\n]\n",
                "[workspace]\nmembers = [\n  \"a\", # about a, and more\n  \"b/c\"\n]\n",
            ),
            (
                "[workspace]\r\nmembers = [\r\n\t\"d\",\r\n\t\"e\"\r\n]\r\n",
                "[workspace]\r\nmembers = [\r\n\t\"b/c\",\r\n\t\"d\",\r\n\t\"e\"\r\n]\r\n",
            ),
            (
                "[workspace]\nmembers = [\n  \"a\", \"d\",\n  \"e\" ]\n",
                "[workspace]\nmembers = [\n  \"a\", \"b/c\", \"d\",\n  \"e\" ]\n",
            ),
            // No-ops.
            (
                "[workspace]\nmembers = [\"./b/c/\"]\n",
                "[workspace]\nmembers = [\"./b/c/\"]\n",
            ),
            (
                "[workspace]\nmembers = [\"b/*\"]\n",
                "[workspace]\nmembers = [\"b/*\"]\n",
            ),
        ] {
            let edited =
                add_member(before, "b/c").unwrap_or_else(|obstacle| panic!("{before}: {obstacle:?}"));
            assert_eq!(edited, after);
            assert_eq!(add_member(&edited, "b/c").as_deref(), Ok(after), "again");
            let mut left = edited.bytes();
            assert!(
                before.bytes().all(|byte| left.any(|other| other == byte)),
                "{before}"
            );
        }
    }

    #[test]
    fn rejects_unsupported_forms() {
        for (text, expected) in [
            ("[workspace", "does not parse"),
            ("[package]\nname = \"a\"\n", "no `[workspace]`"),
            ("[workspace]\nmembers = \"a\"\n", "unusual form"),
            ("[workspace]\nmembers = [\"a\", 1]\n", "unusual form"),
            ("workspace = {}\n", "unusual form"),
            ("workspace.resolver = \"3\"\n", "unusual form"),
        ] {
            let obstacle = add_member(text, "b/c").expect_err(text);
            let error = obstacle.in_file("Cargo.toml", "").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
