//! Finds the lists in a kustomization file, either by notation or with the YAML parser.

use memchr::{memchr3, memmem};
use serde_json::Value;

pub(super) fn read(text: &str) -> Result<Value, String> {
    rbuilder_yaml::parse_value(text).map_err(|_| "it is not a single valid YAML document".into())
}

/// Entries of a list according to the YAML parser. Empty if the value is not a list.
pub(super) fn listed(text: &str, key: &str) -> Vec<String> {
    let list = read(text).map(|file| file[key].clone()).unwrap_or_default();
    let names = list.as_array().into_iter().flatten().filter_map(entry_name);
    names.map(str::to_owned).collect()
}

pub(super) fn is_listed(text: &str, key: &str, entry: &str) -> bool {
    listed(text, key).iter().any(|name| name == entry)
}

pub(super) fn is_entry(name: &Value, entry: &str) -> bool {
    entry_name(name) == Some(entry)
}

/// Returns the name of an entry without a leading `./`.
pub(super) fn entry_name(name: &Value) -> Option<&str> {
    let name = name.as_str()?;
    Some(name.strip_prefix("./").unwrap_or(name))
}

/// Whether each line that looks like an entry is one. That's the case without block scalars,
/// quotes, anchors, multiple documents and the like.
pub(super) fn is_plain(text: &str) -> bool {
    // In a large project, `str::contains` with these characters takes a tenth of `create api`.
    let bytes = text.as_bytes();
    let has_any = |[one, two, three]: [u8; 3]| memchr3(one, two, three, bytes).is_some();
    let unusual = [*b"|>\"", *b"'&*", *b"!%\t", *b"{{?"];
    !unusual.into_iter().any(has_any) && memmem::find(bytes, b"\n---").is_none()
}

pub(super) struct List {
    pub(super) form: Form,
    pub(super) entries: Vec<ListEntry>,
    pub(super) trailing_comma: bool,
    pub(super) key_end: usize,
}

pub(super) struct ListEntry {
    pub(super) name: String,
    pub(super) line: std::ops::Range<usize>,
}

pub(super) enum Form {
    Missing,
    /// `key:`, `key: []` or `key: null`, with the range of the value to remove and the start of the
    /// next line.
    Empty(std::ops::Range<usize>, std::ops::Range<usize>),
    /// `key: [a, b]`, with the position of the closing bracket.
    Flow(usize),
    /// One entry per line, with the indentation of the entries and the end of the last one.
    Block(String, usize),
}

pub(super) fn find(text: &str, key: &str) -> Result<List, String> {
    let head = format!("{key}:");
    let Some((start, line)) = lines(text).find(|(_, line)| line.starts_with(&head)) else {
        // The key may still exist in another notation, e.g. quoted or in a flow mapping.
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
            // The comments above the next key belong to that key.
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
        // A comment at the end of the file may be a heading for the new entry, so insert below it.
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

pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    })
}

fn without_comment(text: &str) -> &str {
    text.find(" #").map_or(text, |at| &text[..at])
}

/// Normalizes a path: strips a comment, whitespace, quotes and a leading `./`.
pub(super) fn plain(text: &str) -> String {
    let text = without_comment(text).trim().trim_matches(['"', '\'']);
    text.strip_prefix("./").unwrap_or(text).to_owned()
}
