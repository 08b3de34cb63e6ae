//! Edits of the lists in a kustomization file: `resources:`, `components:` and `transformers:`.
//!
//! YAML has many notations for a list. The common ones are recognized by structure: a block list, a flow list on one or
//! more lines, an empty value, no key at all. Comments, order and line ends are kept.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Key of the list that most edits change.
pub const RESOURCES: &str = "resources";
/// Key of the list of components.
pub const COMPONENTS: &str = "components";
/// Key of the list of transformers.
pub const TRANSFORMERS: &str = "transformers";

/// Adds an entry to `resources`, unless it exists.
///
/// # Errors
/// Fails if `resources` is not in a known notation.
pub fn add_resource(text: &str, entry: &str) -> Result<String, String> {
    add_to(text, RESOURCES, entry)
}

/// Returns the entries that are missing from `resources`.
pub fn find_missing(text: &str, mut wanted: Vec<String>) -> Vec<String> {
    let known: BTreeSet<String> = entries(text, RESOURCES).into_iter().collect();
    wanted.retain(|entry| !known.contains(entry));
    wanted
}

/// Returns the entries of a list, in order; none if there is no such list.
pub fn entries(text: &str, key: &str) -> Vec<String> {
    let (_, body) = split_mark(text);
    match find(body, key) {
        Ok(list) if is_plain(body) => list.entries.into_iter().map(|known| known.name).collect(),
        _ => listed(body, key),
    }
}

/// Turns an entry of a list on, unless it is: uncomments it where it is commented out, or adds it at the end.
///
/// # Errors
/// Fails if the list is not in a known notation.
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
    // As it is written there: `./x` is the entry `x`.
    let written = read(&edited)
        .map(|file| file[key][index].clone())
        .unwrap_or_default();
    let written = Some(written).filter(|name| is_entry(name, entry));
    check_change(body, &edited, key, |list| {
        list.insert(index, written.unwrap_or_else(|| entry.into()));
    })?;
    Ok(format!("{mark}{edited}"))
}

/// Turns an entry of a list off, if it is on, by commenting it out.
///
/// # Errors
/// Fails if the list is not a block list.
pub fn disable(text: &str, key: &str, entry: &str) -> Result<String, String> {
    change_entry(text, key, entry, |edited, known| {
        let line = &edited[known.line.clone()];
        let dash = known.line.start + line.len() - line.trim_start().len();
        edited.insert_str(dash, "# ");
        EntryChange::Removed
    })
}

/// Replaces an entry of a list in its place, if it is there.
///
/// # Errors
/// Fails if the list is not a block list.
pub fn replace(text: &str, key: &str, entry: &str, new: &str) -> Result<String, String> {
    change_entry(text, key, entry, |edited, known| {
        let line = &edited[known.line.clone()];
        let at = known.line.start + line.find(entry).unwrap_or(0);
        edited.replace_range(at..at + entry.len(), new);
        EntryChange::Replaced(new.to_owned())
    })
}

/// Removes an entry that is commented out, and a list of transformers that has none other.
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

/// An entry that is commented out: `# - ../prometheus`.
struct Commented {
    line: std::ops::Range<usize>,
    /// Position of its dash.
    dash: usize,
    /// Blanks before its `#`.
    indent: String,
}

/// Finds an entry that is commented out among the lines of a list.
fn find_commented(text: &str, list: &List, entry: &str) -> Option<Commented> {
    if matches!(list.form, Form::Missing | Form::Flow(_)) {
        return None;
    }
    let first = list.key_end + text[list.key_end..].find('\n')? + 1;
    for (at, line) in lines(&text[first..]) {
        let content = line.trim();
        let is_entry = content == "-" || content.starts_with("- ");
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

/// The change of an entry that an edit of its line makes.
enum EntryChange {
    Removed,
    Replaced(String),
}

/// Edits the line of an entry, if it is there.
fn change_entry(
    text: &str,
    key: &str,
    entry: &str,
    edit: impl FnOnce(&mut String, &ListEntry) -> EntryChange,
) -> Result<String, String> {
    let (mark, body) = split_mark(text);
    if !entries(body, key).iter().any(|known| known == entry) {
        return Ok(text.to_owned());
    }
    let list = find(body, key)?;
    let Form::Block(..) = list.form else {
        return Err(format!("`{key}` is a flow sequence (`[…]`)"));
    };
    let unusual = || format!("`{key}` has an unsupported notation");
    let known = list.entries.iter().find(|known| known.name == entry);
    let known = known.ok_or_else(unusual)?;
    let mut edited = body.to_owned();
    let change = edit(&mut edited, known);
    if matches!(change, EntryChange::Removed) && list.entries.len() == 1 {
        // kustomize accepts an empty list, but not null.
        edited.insert_str(list.key_end, " []");
    }
    check_change(body, &edited, key, |list| {
        if let Some(at) = list.iter().position(|name| is_entry(name, entry)) {
            match change {
                EntryChange::Removed => drop(list.remove(at)),
                EntryChange::Replaced(new) => list[at] = new.into(),
            }
        }
    })?;
    Ok(format!("{mark}{edited}"))
}

fn add_to(text: &str, key: &str, entry: &str) -> Result<String, String> {
    let (mark, body) = split_mark(text);
    let list = match find(body, key) {
        Ok(list) => list,
        // In an unknown notation, the YAML parser decides.
        Err(_) if is_listed(body, key, entry) => return Ok(text.to_owned()),
        Err(reason) => return Err(reason),
    };
    let is_there = if is_plain(body) {
        list.entries.iter().any(|known| known.name == entry)
    } else {
        is_listed(body, key, entry)
    };
    if is_there {
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
    let edited = match &list.form {
        Form::Missing => insert(body.len(), &|gap, end| format!("{gap}{key}:{end}- {entry}{end}")),
        Form::Empty(value, after) => {
            let mut edited = insert(after.start, &|gap, end| format!("{gap}- {entry}{end}"));
            edited.replace_range(value.clone(), "");
            edited
        }
        Form::Flow(close) => insert(*close, &|_, _| {
            if list.trailing_comma {
                format!(" {entry}")
            } else {
                format!(", {entry}")
            }
        }),
        Form::Block(indent, after) => insert(*after, &|gap, end| format!("{gap}{indent}- {entry}{end}")),
    };
    check_change(body, &edited, key, |list| list.push(entry.into()))?;
    Ok(format!("{mark}{edited}"))
}

/// Removes an entry from `resources`, if it exists.
///
/// # Errors
/// Fails if `resources` is not a block list.
pub fn remove_resource(text: &str, entry: &str) -> Result<String, String> {
    remove_from(text, RESOURCES, entry)
}

/// Removes an entry from `components`, if it exists.
///
/// # Errors
/// Fails if `components` is not a block list.
pub fn remove_component(text: &str, entry: &str) -> Result<String, String> {
    remove_from(text, COMPONENTS, entry)
}

/// Removes an entry from `transformers`, if it exists, and the list when it was the last one.
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

/// Removes the line of a list, if the list is empty.
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

/// Splits off a byte order mark.
fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    })
}

/// Returns the line end in use before a position, or else after it: a file may have both.
fn line_end(text: &str, at: usize) -> &'static str {
    let before = text[..at].rfind('\n');
    match before.or_else(|| text[at..].find('\n').map(|end| at + end)) {
        Some(end) if text[..end].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

fn read(text: &str) -> Result<Value, String> {
    serde_saphyr::from_str::<Value>(text).map_err(|_| "it is not a single valid YAML document".into())
}

/// Returns the entries of a list according to the YAML parser; none if it is not a list.
fn listed(text: &str, key: &str) -> Vec<String> {
    let list = read(text).map(|file| file[key].clone()).unwrap_or_default();
    let names = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    names
        .map(|name| name.strip_prefix("./").unwrap_or(name).to_owned())
        .collect()
}

/// Returns whether a list has an entry according to the YAML parser.
fn is_listed(text: &str, key: &str, entry: &str) -> bool {
    listed(text, key).iter().any(|name| name == entry)
}

fn is_entry(name: &Value, entry: &str) -> bool {
    name.as_str()
        .is_some_and(|name| name.strip_prefix("./").unwrap_or(name) == entry)
}

/// Returns whether lines can be taken literally: without block scalars, quotes, anchors, multiple documents and the
/// like, a line that looks like an entry is one.
fn is_plain(text: &str) -> bool {
    !text.contains(['|', '>', '"', '\'', '&', '*', '!', '%', '\t', '{', '?']) && !text.contains("\n---")
}

/// Checks that an edit has made the intended change to one list and nothing else, whatever notation the file uses.
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

struct List {
    form: Form,
    entries: Vec<ListEntry>,
    trailing_comma: bool,
    /// Position after the colon of the key.
    key_end: usize,
}

struct ListEntry {
    name: String,
    line: std::ops::Range<usize>,
}

enum Form {
    /// The key does not exist.
    Missing,
    /// `key:`, `key: []` or `key: null`: the value to remove, and the start of the next line.
    Empty(std::ops::Range<usize>, std::ops::Range<usize>),
    /// `key: [a, b]`: the position of the closing bracket.
    Flow(usize),
    /// A line for each entry: their indentation, and the end of the last one.
    Block(String, usize),
}

fn find(text: &str, key: &str) -> Result<List, String> {
    let head = format!("{key}:");
    let Some((start, line)) = lines(text).find(|(_, line)| line.starts_with(&head)) else {
        // The key may exist in another notation, with quotes or in braces.
        let is_there = !text.trim().is_empty() && !read(text)?[key].is_null();
        return if is_there {
            Err(format!("`{key}` has an unsupported notation"))
        } else {
            Ok(List {
                form: Form::Missing,
                entries: Vec::new(),
                trailing_comma: false,
                key_end: text.len(),
            })
        };
    };
    let key_end = start + head.len();
    let value = without_comment(&line[head.len()..]).trim_end();
    let next = start + line.len();
    match value.trim() {
        "" => Ok(block(text, key_end, next)),
        "[]" | "null" | "~" => Ok(List {
            form: Form::Empty(key_end..key_end + value.len(), next..next),
            entries: Vec::new(),
            trailing_comma: false,
            key_end,
        }),
        value if value.starts_with('[') => flow(text, key, key_end),
        _ => Err(format!("`{key}` is not a list")),
    }
}

fn block(text: &str, key_end: usize, first: usize) -> List {
    let form = Form::Empty(key_end..key_end, first..first);
    let mut list = List {
        form,
        entries: Vec::new(),
        trailing_comma: false,
        key_end,
    };
    let mut indent = None;
    let (mut end, mut comments) = (first, first);
    for (at, line) in lines(&text[first..]) {
        let (start, next) = (first + at, first + at + line.len());
        let content = line.trim();
        if content.starts_with('#') && !content.contains("+kubebuilder:scaffold") && comments == start {
            comments = next;
        }
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let Some(item) = content
            .strip_prefix('-')
            .filter(|item| item.is_empty() || item.starts_with(' '))
        else {
            // The comments belong to the key that follows the list.
            comments = end;
            break;
        };
        indent = Some(&line[..line.len() - line.trim_start().len()]);
        list.entries.push(ListEntry {
            name: plain(item),
            line: start..next,
        });
        (end, comments) = (next, next);
    }
    if let Some(indent) = indent {
        // A comment at the end of the file is a heading for the new entry.
        list.form = Form::Block(indent.to_owned(), comments);
    }
    list
}

fn flow(text: &str, key: &str, key_end: usize) -> Result<List, String> {
    let open = key_end
        + text[key_end..]
            .find('[')
            .ok_or_else(|| format!("`{key}` is not a list"))?;
    let close = open
        + text[open..]
            .find(']')
            .ok_or_else(|| format!("`{key}` has no closing bracket"))?;
    let inner = &text[open + 1..close];
    if inner.contains(['#', '{', '[']) {
        return Err(format!("`{key}` is a flow sequence with values other than names"));
    }
    let entries: Vec<ListEntry> = inner
        .split(',')
        .map(plain)
        .filter(|name| !name.is_empty())
        .map(|name| ListEntry {
            name,
            line: open..close,
        })
        .collect();
    let content = inner.trim_end();
    if entries.is_empty() {
        let line_end = text[close..].find('\n').map_or(text.len(), |at| close + at + 1);
        return Ok(List {
            form: Form::Empty(key_end..close + 1, line_end..line_end),
            entries,
            trailing_comma: false,
            key_end,
        });
    }
    Ok(List {
        form: Form::Flow(open + 1 + content.len()),
        entries,
        trailing_comma: content.ends_with(','),
        key_end,
    })
}

/// Returns lines, including their line ends, and their positions.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    })
}

fn without_comment(text: &str) -> &str {
    text.find(" #").map_or(text, |at| &text[..at])
}

/// Normalizes a path: removes comment, blanks, quotes and a leading `./`.
fn plain(text: &str) -> String {
    let text = without_comment(text).trim().trim_matches(['"', '\'']);
    text.strip_prefix("./").unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &str, after: &str) {
        let edited = add_resource(before, "new.yaml").expect(before);
        assert_eq!(edited, after, "adding to\n{before}");
        assert_eq!(
            add_resource(&edited, "new.yaml").expect(after),
            after,
            "adding twice to\n{before}"
        );
        let list = serde_saphyr::from_str::<serde_json::Value>(&edited).expect("it is YAML");
        let names = list["resources"].as_array().expect("a list");
        assert!(names.iter().any(|name| name == "new.yaml"), "{edited}");
    }

    #[test]
    fn components_are_a_list_of_their_own() {
        let before = "resources:\n- a.yaml\n\ncomponents:\n- ../metrics\n# A heading.\n# - ../off\n";
        let after = "resources:\n- a.yaml\n\ncomponents:\n- ../metrics\n# A heading.\n# - ../off\n- ../new\n";
        assert_eq!(enable(before, COMPONENTS, "../new").as_deref(), Ok(after));
        assert_eq!(enable(after, COMPONENTS, "../new").as_deref(), Ok(after));
        assert_eq!(
            enable("resources: []\n", COMPONENTS, "../new").as_deref(),
            Ok("resources: []\ncomponents:\n- ../new\n")
        );
    }

    #[test]
    fn an_entry_is_turned_on_and_off_in_its_place() {
        for (off, on) in [
            (
                "components:\n- a\n# Why.\n# - x\n# - z\nb: 1\n",
                "components:\n- a\n# Why.\n- x\n# - z\nb: 1\n",
            ),
            (
                "components: []\n# Why.\n# - x # more\n\nb: 1\n",
                "components:\n# Why.\n- x # more\n\nb: 1\n",
            ),
            ("components:\n  # - x\n  - a", "components:\n  - x\n  - a"),
            (
                "components:\r\n- a\r\n# - ./x\r\n",
                "components:\r\n- a\r\n- ./x\r\n",
            ),
            (
                "\u{feff}components:\n- a\n# - 'x'\n",
                "\u{feff}components:\n- a\n- 'x'\n",
            ),
        ] {
            assert_eq!(enable(off, COMPONENTS, "x").as_deref(), Ok(on), "{off}");
            assert_eq!(disable(on, COMPONENTS, "x").as_deref(), Ok(off), "{on}");
            assert_eq!(enable(on, COMPONENTS, "x").as_deref(), Ok(on), "{on}");
            assert_eq!(disable(off, COMPONENTS, "x").as_deref(), Ok(off), "{off}");
        }
        // Comments of another list, in another form, or that say more.
        for (off, on) in [
            (
                "a:\n- b\n# - x\ncomponents:\n- a\n",
                "a:\n- b\n# - x\ncomponents:\n- a\n- x\n",
            ),
            (
                "components:\n- a\n# - x is off\n",
                "components:\n- a\n# - x is off\n- x\n",
            ),
            ("components: [a]\n# - x\n", "components: [a, x]\n# - x\n"),
            ("# - x\n", "# - x\ncomponents:\n- x\n"),
        ] {
            assert_eq!(enable(off, COMPONENTS, "x").as_deref(), Ok(on), "{off}");
        }
        for text in ["components: [x]\n", "components: &a\n- x\n"] {
            assert!(disable(text, COMPONENTS, "x").is_err(), "{text}");
            assert!(replace(text, COMPONENTS, "x", "y").is_err(), "{text}");
        }
    }

    #[test]
    fn an_entry_is_replaced_in_its_place() {
        let before = "components:\n- ../a # why\n- ../a/b\n- \"../c\"\n";
        let after = "components:\n- ../a/off # why\n- ../a/b\n- \"../c\"\n";
        assert_eq!(
            replace(before, COMPONENTS, "../a", "../a/off").as_deref(),
            Ok(after)
        );
        assert_eq!(
            replace(after, COMPONENTS, "../a/off", "../a").as_deref(),
            Ok(before)
        );
        assert_eq!(replace(after, COMPONENTS, "../a", "../x").as_deref(), Ok(after));
        assert_eq!(entries(after, COMPONENTS), ["../a/off", "../a/b", "../c"]);
    }

    #[test]
    fn what_is_commented_out_can_be_removed() {
        let text = "components:\n- a\n# - x\n\ntransformers: []\n# - x/y\n";
        let text = remove_commented(text, TRANSFORMERS, "x/y");
        assert_eq!(text, "components:\n- a\n# - x\n\n");
        assert_eq!(remove_commented(&text, COMPONENTS, "x"), "components:\n- a\n\n");
        assert_eq!(remove_commented(&text, COMPONENTS, "a"), text);
    }

    #[test]
    fn an_entry_is_added_to_every_form() {
        check("resources:\n- a.yaml\n", "resources:\n- a.yaml\n- new.yaml\n");
        check(
            "resources:\n  - a.yaml # why\n  # more\n\npatches: []\n",
            "resources:\n  - a.yaml # why\n  - new.yaml\n  # more\n\npatches: []\n",
        );
        check("resources: []\n", "resources:\n- new.yaml\n");
        check(
            "resources: [] # none yet\nx: 1\n",
            "resources: # none yet\n- new.yaml\nx: 1\n",
        );
        check("resources: [ ]\n", "resources:\n- new.yaml\n");
        check("resources:\n", "resources:\n- new.yaml\n");
        check("resources: null\nx: 1\n", "resources:\n- new.yaml\nx: 1\n");
        check(
            "resources: [a.yaml, b.yaml]\n",
            "resources: [a.yaml, b.yaml, new.yaml]\n",
        );
        check(
            "resources: [\n  a.yaml,\n]\n",
            "resources: [\n  a.yaml, new.yaml\n]\n",
        );
        check(
            "kind: Kustomization",
            "kind: Kustomization\nresources:\n- new.yaml\n",
        );
        check("", "resources:\n- new.yaml\n");
        check(
            "a: 1\r\nresources:\r\n- a.yaml\r\nb: 1\r\n",
            "a: 1\r\nresources:\r\n- a.yaml\r\n- new.yaml\r\nb: 1\r\n",
        );
        check("resources:\n- a.yaml", "resources:\n- a.yaml\n- new.yaml\n");
        check(
            "resources:\n# - off.yaml\n",
            "resources:\n- new.yaml\n# - off.yaml\n",
        );
        check(
            "resources:\n- a.yaml\n# Heading.\n",
            "resources:\n- a.yaml\n# Heading.\n- new.yaml\n",
        );
        check(
            "resources:\n- a.yaml\n# +kubebuilder:scaffold:x\n",
            "resources:\n- a.yaml\n- new.yaml\n# +kubebuilder:scaffold:x\n",
        );
        check("resources:\n- \"new.yaml\"\n", "resources:\n- \"new.yaml\"\n");
        let listed = "resources:\n- ./new.yaml\n";
        assert_eq!(add_resource(listed, "new.yaml").as_deref(), Ok(listed));
    }

    #[test]
    fn only_the_list_changes() {
        check(
            "\u{feff}resources:\n- a.yaml\n",
            "\u{feff}resources:\n- a.yaml\n- new.yaml\n",
        );
        check(
            "# resources:\n# - new.yaml\nresources:\n- a.yaml\n",
            "# resources:\n# - new.yaml\nresources:\n- a.yaml\n- new.yaml\n",
        );
        check(
            "a: 1\nresources:\r\n- a.yaml\r\nb: 1\n",
            "a: 1\nresources:\r\n- a.yaml\r\n- new.yaml\r\nb: 1\n",
        );
        check(
            "---\nresources:\n- a.yaml\n",
            "---\nresources:\n- a.yaml\n- new.yaml\n",
        );
        check(
            "x: |\n  resources:\n  - new.yaml\nresources:\n- a.yaml\n",
            "x: |\n  resources:\n  - new.yaml\nresources:\n- a.yaml\n- new.yaml\n",
        );
        check(
            "x: &a [b]\nresources:\n- \"a # b.yaml\"\ny: *a\n",
            "x: &a [b]\nresources:\n- \"a # b.yaml\"\n- new.yaml\ny: *a\n",
        );
    }

    #[test]
    fn an_entry_that_readers_find_is_there() {
        for text in [
            "\"resources\":\n- new.yaml\n",
            "resources : [a.yaml, ./new.yaml]\n",
            "{resources: [new.yaml]}\n",
            "resources: &all\n- new.yaml\n",
            "resources:\n- >-\n  new.yaml\n",
            "resources: [a.yaml, # x\n new.yaml]\n",
        ] {
            assert_eq!(add_resource(text, "new.yaml").as_deref(), Ok(text), "{text}");
        }
        // Lines that only look like entries.
        for text in [
            "resources:\n- |\n  a\n- \"a\n- new.yaml\n\"\n",
            "resources:\n- a.yaml\nresources:\n- b.yaml\n",
            "a: 1\n---\nb: 1\n",
            "resources:\n\t- a.yaml\n",
            "resources:\n- a.yaml\n...\n",
            "- a\n",
        ] {
            match add_resource(text, "new.yaml") {
                Err(_) => {}
                Ok(edited) => {
                    let list = read(&edited).expect(&edited)["resources"].clone();
                    let names = list.as_array().expect(&edited);
                    assert_eq!(
                        names.iter().filter(|name| *name == "new.yaml").count(),
                        1,
                        "{edited}"
                    );
                }
            }
        }
    }

    #[test]
    fn entries_that_are_there_are_not_missing() {
        let entries = || vec!["a.yaml".to_owned(), "b.yaml".to_owned()];
        assert_eq!(
            find_missing("resources: [a.yaml] # b.yaml\n", entries()),
            ["b.yaml"]
        );
        assert_eq!(
            find_missing("resources:\n- b.yaml\n- ./a.yaml\n", entries()),
            [""; 0]
        );
        assert_eq!(
            find_missing("resources:\n- 'a.yaml'\n- b.yaml\n", entries()),
            [""; 0]
        );
        assert_eq!(
            find_missing("resources:\n- \"x\n- a.yaml\n\"\n", entries()),
            entries()
        );
    }

    #[test]
    fn values_other_than_lists_are_rejected() {
        for text in [
            "resources: a.yaml\n",
            "resources: [a.yaml\n",
            "a: [\n",
            "resources: [{a: b}]\n",
            "\"resources\":\n- a.yaml\n",
            "{resources: [a.yaml]}\n",
        ] {
            assert!(add_resource(text, "new.yaml").is_err(), "{text}");
        }
    }

    #[test]
    fn an_entry_is_removed() {
        for (before, after) in [
            (
                "resources:\n- a.yaml\n- old.yaml # x\n- b.yaml\n",
                "resources:\n- a.yaml\n- b.yaml\n",
            ),
            ("resources:\n- old.yaml\nx: 1\n", "resources: []\nx: 1\n"),
            ("resources:\n- a.yaml\n", "resources:\n- a.yaml\n"),
        ] {
            assert_eq!(remove_resource(before, "old.yaml").expect(before), after);
        }
    }
}
