//! Edits of the lists in a kustomization file: `resources:`, `components:` and `transformers:`.
//!
//! YAML has many notations for a list. This module recognizes the common ones by structure: a block
//! list, a flow list on one or more lines, an empty value, and a missing key. Comments, order and
//! line endings are preserved.

mod list;
pub mod webhooks;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use self::list::{
    Form, List, ListEntry, entry_name, find, is_entry, is_listed, is_plain, lines, listed, plain, read,
};

/// Key of the list that most edits change.
pub const RESOURCES: &str = "resources";
/// Key of the component list.
pub const COMPONENTS: &str = "components";
/// Key of the transformer list.
pub const TRANSFORMERS: &str = "transformers";

/// Adds an entry to `resources` unless it is listed already.
///
/// # Errors
/// Fails if `resources` has an unknown notation.
pub fn add_resource(text: &str, entry: &str) -> Result<String, String> {
    add_to(text, RESOURCES, entry)
}

/// Adds entries to `resources` unless they are listed already.
///
/// # Errors
/// Fails if `resources` has an unknown notation.
pub fn add_resources(text: &str, entries: &[&str]) -> Result<String, String> {
    add_all(text, RESOURCES, entries)
}

/// Returns the entries of `wanted` that `resources` lacks.
pub fn find_missing(text: &str, mut wanted: Vec<String>) -> Vec<String> {
    let known: BTreeSet<String> = entries(text, RESOURCES).into_iter().collect();
    wanted.retain(|entry| !known.contains(entry));
    wanted
}

/// Returns the entries of a list in order. Empty if the list is missing.
pub fn entries(text: &str, key: &str) -> Vec<String> {
    let (_, body) = split_mark(text);
    match find(body, key) {
        Ok(list) if is_plain(body) => list.entries.into_iter().map(|known| known.name).collect(),
        _ => listed(body, key),
    }
}

/// Enables an entry of a list. A commented-out entry is uncommented in place; a missing one is
/// appended.
///
/// # Errors
/// Fails if the list has an unknown notation.
pub fn enable(text: &str, key: &str, entry: &str) -> Result<String, String> {
    let (mark, body) = split_mark(text);
    if entries(body, key).iter().any(|known| known == entry) {
        return Ok(text.to_owned());
    }
    let found = find(body, key).ok();
    let commented = found.and_then(|list| Some((find_commented(body, &list, entry)?, list)));
    let Some((commented, list)) = commented else {
        return add_to(text, key, entry);
    };
    let above = list.entries.iter();
    let index = above
        .filter(|known| known.line.start < commented.line.start)
        .count();
    let indent = match &list.form {
        Form::Block(indent, _) => indent.clone(),
        _ => commented.indent,
    };
    let mut edited = body.to_owned();
    edited.replace_range(commented.line.start..commented.dash, &indent);
    if let Form::Empty(value, _) = &list.form {
        edited.replace_range(value.clone(), "");
    }
    // The file may spell the entry `x` as `./x`, so compare with its own spelling.
    let written = read(&edited)
        .map(|file| file[key][index].clone())
        .unwrap_or_default();
    let written = Some(written).filter(|name| is_entry(name, entry));
    check_change(body, &edited, key, |list| {
        list.insert(index, written.unwrap_or_else(|| entry.into()));
    })?;
    Ok(format!("{mark}{edited}"))
}

/// Comments out an entry of a list.
///
/// # Errors
/// Fails if the list is not a block list.
pub fn disable(text: &str, key: &str, entry: &str) -> Result<String, String> {
    change_entries(text, key, &[entry], |edited, _, known| {
        let line = &edited[known.line.clone()];
        let dash = known.line.start + line.len() - line.trim_start().len();
        edited.insert_str(dash, "# ");
        None
    })
}

/// Replaces an entry of a list in place. No-op if the entry is missing.
///
/// # Errors
/// Fails if the list is not a block list.
pub fn replace(text: &str, key: &str, entry: &str, new: &str) -> Result<String, String> {
    replace_all(text, key, &BTreeMap::from([(entry, new)]))
}

/// Replaces entries of a list in place, in one edit. Missing entries are ignored.
///
/// # Errors
/// Fails if the list is not a block list.
pub fn replace_all(text: &str, key: &str, changes: &BTreeMap<&str, &str>) -> Result<String, String> {
    let old: Vec<&str> = changes.keys().copied().collect();
    change_entries(text, key, &old, |edited, entry, known| {
        let line = &edited[known.line.clone()];
        let at = known.line.start + line.find(entry).unwrap_or(0);
        edited.replace_range(at..at + entry.len(), changes[entry]);
        Some(changes[entry].to_owned())
    })
}

/// Removes a commented-out entry. Also removes the list of transformers if it becomes empty.
pub fn remove_commented(text: &str, key: &str, entry: &str) -> String {
    let (mark, body) = split_mark(text);
    let found = find(body, key).ok();
    let commented = found.and_then(|list| find_commented(body, &list, entry));
    let Some(commented) = commented else {
        return text.to_owned();
    };
    let mut edited = body.to_owned();
    edited.replace_range(commented.line, "");
    match key {
        TRANSFORMERS => format!("{mark}{}", without_empty(&edited, key)),
        _ => format!("{mark}{edited}"),
    }
}

struct Commented {
    line: std::ops::Range<usize>,
    dash: usize,
    indent: String,
}

fn find_commented(text: &str, list: &List, entry: &str) -> Option<Commented> {
    if matches!(list.form, Form::Missing | Form::Flow(_)) {
        return None;
    }
    let first = list.key_end + text[list.key_end..].find('\n')? + 1;
    for (at, line) in lines(&text[first..]) {
        let content = line.trim();
        let is_entry = content == "-" || content.starts_with("- ");
        // Anything but an entry or a comment ends the list.
        let Some(comment) = content.strip_prefix('#') else {
            if content.is_empty() || is_entry {
                continue;
            }
            return None;
        };
        let item = comment.trim_start();
        if item.strip_prefix("- ").is_some_and(|item| plain(item) == entry) {
            let start = first + at;
            let hash = line.len() - line.trim_start().len();
            return Some(Commented {
                line: start..start + line.len(),
                dash: start + hash + 1 + comment.len() - item.len(),
                indent: line[..hash].to_owned(),
            });
        }
    }
    None
}

/// Changes the first occurrence of each entry, in one edit. `edit` changes the line of an entry, and
/// returns its new name, or `None` if the entry is no longer listed.
fn change_entries(
    text: &str,
    key: &str,
    wanted: &[&str],
    edit: impl Fn(&mut String, &str, &ListEntry) -> Option<String>,
) -> Result<String, String> {
    let (mark, body) = split_mark(text);
    let listed: BTreeSet<String> = entries(body, key).into_iter().collect();
    let mut wanted: BTreeSet<&str> = wanted.iter().copied().collect();
    wanted.retain(|entry| listed.contains(*entry));
    if wanted.is_empty() {
        return Ok(text.to_owned());
    }
    let list = find(body, key)?;
    let Form::Block(..) = list.form else {
        return Err(format!("`{key}` is a flow sequence (`[…]`)"));
    };
    let mut left = wanted;
    let is_first = |known: &&ListEntry| left.remove(known.name.as_str());
    let found: Vec<&ListEntry> = list.entries.iter().filter(is_first).collect();
    if !left.is_empty() {
        return Err(format!("`{key}` has an unsupported notation"));
    }
    let mut edited = body.to_owned();
    // From the end, because an edit moves the lines below it.
    let from_the_end = found.iter().rev();
    let mut changes: BTreeMap<&str, Option<String>> = from_the_end
        .map(|known| (known.name.as_str(), edit(&mut edited, &known.name, known)))
        .collect();
    if changes.len() == list.entries.len() && changes.values().all(Option::is_none) {
        // kustomize accepts an empty list, but not null.
        edited.insert_str(list.key_end, " []");
    }
    check_change(body, &edited, key, |list| {
        list.retain_mut(|name| {
            let change = entry_name(name).and_then(|entry| changes.remove(entry));
            match change {
                None => true,
                Some(None) => false,
                Some(Some(new)) => {
                    *name = new.into();
                    true
                }
            }
        });
    })?;
    Ok(format!("{mark}{edited}"))
}

fn add_to(text: &str, key: &str, entry: &str) -> Result<String, String> {
    add_all(text, key, &[entry])
}

/// Adds entries to a list in one edit, since each edit is checked by parsing the file.
fn add_all(text: &str, key: &str, entries: &[&str]) -> Result<String, String> {
    let (mark, body) = split_mark(text);
    let list = match find(body, key) {
        Ok(list) => list,
        // An unknown notation, but the YAML parser may still find the entries.
        Err(_) if entries.iter().all(|entry| is_listed(body, key, entry)) => return Ok(text.to_owned()),
        Err(reason) => return Err(reason),
    };
    let mut known: BTreeSet<&str> = match is_plain(body) {
        true => list.entries.iter().map(|known| known.name.as_str()).collect(),
        false => {
            let listed = entries.iter().filter(|entry| is_listed(body, key, entry));
            listed.copied().collect()
        }
    };
    let new: Vec<&str> = entries
        .iter()
        .copied()
        .filter(|entry| known.insert(entry))
        .collect();
    if new.is_empty() {
        return Ok(text.to_owned());
    }
    let insert = |at: usize, make: &dyn Fn(&str, &str) -> String| {
        let end = line_end(body, at);
        let gap = if at == 0 || body[..at].ends_with('\n') {
            ""
        } else {
            end
        };
        let mut edited = body.to_owned();
        edited.insert_str(at, &make(gap, end));
        edited
    };
    let in_lines = |indent: &str, end: &str| -> String {
        let lines = new.iter().map(|entry| format!("{indent}- {entry}{end}"));
        lines.collect()
    };
    let edited = match &list.form {
        Form::Missing => insert(body.len(), &|gap, end| {
            format!("{gap}{key}:{end}{}", in_lines("", end))
        }),
        Form::Empty(value, after) => {
            let mut edited = insert(after.start, &|gap, end| format!("{gap}{}", in_lines("", end)));
            edited.replace_range(value.clone(), "");
            edited
        }
        Form::Flow(close) => insert(*close, &|_, _| {
            let added = new.join(", ");
            if list.trailing_comma {
                format!(" {added}")
            } else {
                format!(", {added}")
            }
        }),
        Form::Block(indent, after) => insert(*after, &|gap, end| format!("{gap}{}", in_lines(indent, end))),
    };
    check_change(body, &edited, key, |list| {
        list.extend(new.iter().map(|entry| (*entry).into()));
    })?;
    Ok(format!("{mark}{edited}"))
}

/// Removes an entry from `resources`. No-op if the entry is missing.
///
/// # Errors
/// Fails if `resources` is not a block list.
pub fn remove_resource(text: &str, entry: &str) -> Result<String, String> {
    remove_from(text, RESOURCES, entry)
}

/// Removes an entry from `components`. No-op if the entry is missing.
///
/// # Errors
/// Fails if `components` is not a block list.
pub fn remove_component(text: &str, entry: &str) -> Result<String, String> {
    remove_from(text, COMPONENTS, entry)
}

/// Removes an entry from `transformers`, and the list itself if it becomes empty. No-op if the
/// entry is missing.
///
/// # Errors
/// Fails if `transformers` is not a block list.
pub fn remove_transformer(text: &str, entry: &str) -> Result<String, String> {
    let edited = remove_from(text, TRANSFORMERS, entry)?;
    Ok(match edited == text {
        true => edited,
        false => without_empty(&edited, TRANSFORMERS),
    })
}

fn without_empty(text: &str, key: &str) -> String {
    let empty = format!("{key}: []");
    let is_empty = read(text).is_ok_and(|file| file[key] == Value::Array(Vec::new()));
    let lines = text.split_inclusive('\n');
    match is_empty {
        true => lines.filter(|line| line.trim_end() != empty).collect(),
        false => text.to_owned(),
    }
}

fn remove_from(text: &str, key: &str, entry: &str) -> Result<String, String> {
    let (mark, body) = split_mark(text);
    let list = match find(body, key) {
        Ok(list) => list,
        // Nothing to remove, so the notation doesn't matter.
        Err(_) if read(body).is_ok() && !is_listed(body, key, entry) => return Ok(text.to_owned()),
        Err(reason) => return Err(reason),
    };
    let Some(known) = list.entries.iter().find(|known| known.name == entry) else {
        return Ok(text.to_owned());
    };
    let Form::Block(..) = list.form else {
        return Err(format!("`{key}` is a flow sequence (`[…]`)"));
    };
    let mut edited = body.to_owned();
    edited.replace_range(known.line.clone(), "");
    if list.entries.len() == 1 {
        // kustomize accepts an empty list, but not null.
        edited.insert_str(list.key_end, " []");
    }
    check_change(body, &edited, key, |list| {
        if let Some(at) = list.iter().position(|name| is_entry(name, entry)) {
            list.remove(at);
        }
    })?;
    Ok(format!("{mark}{edited}"))
}

fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    })
}

/// Line ending before a position, since a file may mix them. The first line uses the ending after
/// it.
fn line_end(text: &str, at: usize) -> &'static str {
    let before = text[..at].rfind('\n');
    match before.or_else(|| text[at..].find('\n').map(|end| at + end)) {
        Some(end) if text[..end].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Verifies with the YAML parser that an edit changed one list as intended and nothing else. This
/// guards against notations that [`find`] misreads.
fn check_change(
    before: &str,
    after: &str,
    key: &str,
    change: impl FnOnce(&mut Vec<Value>),
) -> Result<(), String> {
    let unusual = || format!("`{key}` has an unsupported notation");
    let mut expected = if before.trim().is_empty() {
        Value::Null
    } else {
        read(before)?
    };
    // A file with only comments parses as null.
    if expected.is_null() {
        expected = Value::Object(Map::default());
    }
    let file = expected.as_object_mut().ok_or_else(unusual)?;
    let list = file.entry(key).or_insert(Value::Null);
    if list.is_null() {
        *list = Value::Array(Vec::new());
    }
    change(list.as_array_mut().ok_or_else(unusual)?);
    if read(after).is_ok_and(|file| file == expected) {
        Ok(())
    } else {
        Err(unusual())
    }
}

#[cfg(test)]
mod tests;
